package import Foundation
package import GRDB
package import MartletCore

/// The IDs that a store assigns to rows that have no identity of their own. Whatever needs one asks here: stamping, the
/// history of changes that are not stamped yet, pruning, and attaching.
///
/// A store that was created before format 15 keeps its rule for everything that it had by then: those IDs are stored
/// here and on other nodes, and the history has told them of changes that were not stamped.
package struct HiddenIDRule: Sendable {
    private let namespace: UUID
    private let ascending: AscendingID
    /// The first change whose IDs ascend. 0: so do the IDs of rows that existed when their table was attached. Nil: no
    /// IDs ascend.
    private let firstAscending: Int64?

    package init(namespace: UUID, firstAscending: Int64?) {
        self.namespace = namespace
        self.firstAscending = firstAscending
        ascending = AscendingID(namespace: namespace)
    }

    /// The rule for existing rows of tables that are attached with this seed. All versions of Martlet derive the same
    /// IDs from a seed, since copies of one database may be attached by different ones.
    package init(seed: UUID) { self.init(namespace: seed, firstAscending: nil) }

    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` if the store has no namespace.
    package static func load(_ db: Database) throws -> HiddenIDRule {
        guard let namespace = try Meta.text(db, MetaKey.hiddenNamespace).flatMap(UUID.init(uuidString:)) else {
            throw StoreError(
                .corrupt, "The store has no namespace for the IDs of rows.", hint: "Restore the file from a backup.")
        }
        return HiddenIDRule(
            namespace: namespace, firstAscending: try Meta.integer(db, MetaKey.firstAscendingChange))
    }

    /// Whether the IDs of existing rows have the order of their integer keys.
    package var existingRowsAscend: Bool { firstAscending == 0 }

    /// Returns a function for the IDs of rows that existed when their table was attached, by integer key.
    package func existing(_ entity: String) -> (Int64) -> StableID {
        guard existingRowsAscend else {
            return { [namespace] in HiddenID.existing(namespace: namespace, entity: entity, row: $0) }
        }
        let id = ascending.existing(entity)
        return { [namespace] in id($0) ?? HiddenID.existing(namespace: namespace, entity: entity, row: $0) }
    }

    /// Returns the ID of a row that was inserted by this change.
    ///
    /// - Parameter time: The time of the change, in milliseconds since 1970.
    package func inserted(change: Int64, time: Int64) -> StableID {
        ascendingID(.inserted, change, time)
            ?? HiddenID.inserted(namespace: namespace, change: change, time: time)
    }

    /// Returns the ID of a row that another row refers to by its integer key, but that doesn't exist.
    ///
    /// - Parameter time: The time of the change that refers to the row, in milliseconds since 1970.
    package func reserved(_ entity: String, row: Int64, change: Int64, time: Int64) -> StableID {
        // One change may refer to several such rows of a table.
        ascendingID(.reserved, change, time, entity, row)
            ?? HiddenID.reserved(namespace: namespace, entity: "\(entity)/\(row)", change: change, time: time)
    }

    /// Returns the ID of a row whose columns no longer form the ID that it had, because of this change to another row,
    /// and whose new ID is taken.
    ///
    /// - Parameter time: The time of the change, in milliseconds since 1970.
    package func renamed(_ entity: String, row: Int64, change: Int64, time: Int64) -> StableID {
        ascendingID(.renamed, change, time, entity, row)
            ?? HiddenID.existing(namespace: namespace, entity: "\(entity)/\(change)", row: row)
    }

    private func ascendingID(
        _ purpose: AscendingID.Purpose, _ change: Int64, _ time: Int64, _ entity: String = "", _ row: Int64 = 0
    ) -> StableID? {
        guard let firstAscending, change >= firstAscending else { return nil }
        return ascending.id(purpose, change: change, time: time, entity: entity, row: row)
    }
}
