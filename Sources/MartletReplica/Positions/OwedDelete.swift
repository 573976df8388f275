import Foundation
package import GRDB
package import MartletCore
import MartletStore

/// A device's delete that overrules an earlier change of another system.
///
/// The delete may have arrived when the row was gone already. Then the history has no change of it, and the other
/// system would keep its row for good. So each export that answers such systems owes the delete, until it has a record
/// of it.
package struct OwedDelete: Equatable, Sendable {
    package var entity: Int64
    package var identity: StableID
    /// When the row was deleted. Its tombstone may be collected before this is exported.
    package var deleted: HybridTime
    private let key: String

    /// The keys of what an export owes: with the row and the time, so that a later delete of the row has another one.
    private static func keys(_ prefix: String) -> String { "owed/\(prefix)/" }

    /// Keeps the delete for each export that owes it. None does if another system made it, or if this store has heard
    /// of no other system.
    package static func note(_ db: Database, _ entity: Int64, _ identity: StableID, deletedAt stamp: Stamp) throws {
        guard !stamp.node.isSource else { return }
        let prefixes = try ExportPosition.answering(db)
        guard !prefixes.isEmpty, try NodeDirectory.hasSource(db) else { return }
        let row = "\(entity)/\(stamp.time.rawValue)/\(Hex.text(identity.bytes))"
        for prefix in prefixes { try Meta.set(db, keys(prefix) + row, Data(identity.bytes)) }
    }

    package static func load(_ db: Database, _ prefix: String, limit: Int) throws -> [OwedDelete] {
        try Meta.entries(db, keys(prefix), limit: limit).compactMap { entry in
            let row = entry.key.dropFirst(keys(prefix).count).split(separator: "/")
            guard row.count == 3, let entity = Int64(row[0]), let time = UInt64(row[1]),
                let identity = Data.fromDatabaseValue(entry.value)
            else { return nil }
            return OwedDelete(
                entity: entity, identity: StableID(bytes: Array(identity)), deleted: HybridTime(rawValue: time),
                key: entry.key)
        }
    }

    package static func areAny(_ db: Database, _ prefix: String) throws -> Bool {
        try !Meta.entries(db, keys(prefix), limit: 1).isEmpty
    }

    package func forget(_ db: Database) throws { try Meta.remove(db, key) }

    package static func forgetAll(_ db: Database, _ prefix: String) throws {
        for entry in try Meta.entries(db, keys(prefix)) { try Meta.remove(db, entry.key) }
    }
}
