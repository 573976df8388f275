import Foundation
package import GRDB
package import MartletCore
import MartletStore

/// The delete of a row that another system has inserted or changed before it.
///
/// A device deleted the row, and that delete may have arrived when the row was gone already. Then the history has no
/// change of it, and the other system would keep its row for good. So each export of this store owes the delete, until
/// it has a record of it.
package struct OwedDelete: Equatable, Sendable {
    package var entity: Int64
    package var identity: StableID
    private let key: String

    /// The keys of what an export owes: with the row and the time, so that a later delete of the row has another one.
    private static func keys(_ prefix: String) -> String { "owed/\(prefix)/" }

    package static func note(_ db: Database, _ entity: Int64, _ identity: StableID, deletedAt stamp: Stamp) throws {
        for prefix in try ExportPosition.prefixes(db) {
            let row = "\(entity)/\(stamp.time.rawValue)/\(Hex.text(identity.bytes))"
            try Meta.set(db, keys(prefix) + row, Data(identity.bytes))
        }
    }

    package static func load(_ db: Database, _ prefix: String, limit: Int) throws -> [OwedDelete] {
        try Meta.entries(db, keys(prefix), limit: limit).compactMap { entry in
            let row = entry.key.dropFirst(keys(prefix).count)
            guard let entity = row.split(separator: "/").first.flatMap({ Int64($0) }),
                let identity = Data.fromDatabaseValue(entry.value)
            else { return nil }
            return OwedDelete(entity: entity, identity: StableID(bytes: Array(identity)), key: entry.key)
        }
    }

    package static func areAny(_ db: Database, _ prefix: String) throws -> Bool {
        try !load(db, prefix, limit: 1).isEmpty
    }

    package func forget(_ db: Database) throws { try Meta.remove(db, key) }

    package static func forgetAll(_ db: Database, _ prefix: String) throws {
        for owed in try load(db, prefix, limit: .max) { try owed.forget(db) }
    }
}
