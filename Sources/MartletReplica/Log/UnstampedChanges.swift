package import GRDB
import MartletStore

/// What the log has that the engine has not stamped and enqueued yet: reads of `_martlet_log`, which the store and its
/// triggers write.
package enum UnstampedChanges {
    /// Returns whether there is anything without a stamp.
    package static func exist(_ db: Database) throws -> Bool {
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        return try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM \(InternalName.log) WHERE id > ?)", arguments: [stamped])
            ?? false
    }

    /// Returns the number of changes without a stamp.
    package static func count(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(
            db, sql: "SELECT count(*) FROM \(InternalName.log) WHERE id > ? AND e <> 0",
            arguments: [Meta.integer(db, MetaKey.stamped) ?? 0]) ?? 0
    }

    /// Returns the number of local transactions without stamps. Counts all changes after the last mark as one.
    package static func transactionCount(_ db: Database) throws -> Int {
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        return try Int.fetchOne(
            db,
            sql: """
                SELECT count(*) + EXISTS (SELECT 1 FROM \(InternalName.log) WHERE id >
                coalesce((SELECT max(id) FROM \(InternalName.log) WHERE e = 0), 0))
                FROM \(InternalName.log) WHERE id > ? AND e = 0 AND c1 IS NOT ? AND c1 IS NOT ?
                AND \(HistoryClause.isShown)
                """,
            arguments: [stamped, TransactionAuthor.sync, TransactionAuthor.ingest]) ?? 0
    }

    /// Returns the IDs in the log that have no stamps. Nil if there are none.
    package static func range(_ db: Database) throws -> ClosedRange<Int64>? {
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        let last = try db.lastChange()
        return last > stamped ? stamped + 1...last : nil
    }

    /// Returns true if a mark ends the log, and everything up to it has its stamps.
    package static func areNone(_ db: Database) throws -> Bool {
        guard let last = try Row.fetchOne(db, sql: "SELECT id, e FROM \(InternalName.log) ORDER BY id DESC LIMIT 1")
        else { return true }
        let entity: Int64 = last["e"]
        let id: Int64 = last["id"]
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        return entity == 0 && id <= stamped
    }

    /// Returns the newest change up to a place in the log, stamped or not. 0 if there is none.
    package static func newestChange(_ db: Database, through id: Int64) throws -> Int64 {
        try Int64.fetchOne(
            db, sql: "SELECT id FROM \(InternalName.log) WHERE e <> 0 AND id <= ? ORDER BY id DESC LIMIT 1",
            arguments: [id]) ?? 0
    }
}
