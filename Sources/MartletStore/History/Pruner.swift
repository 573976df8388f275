package import GRDB

/// Deletes the oldest history, for callers that are already in a transaction.
package enum Pruner {
    /// The result of a deletion.
    package struct Outcome {
        /// The number of deleted rows of the log.
        package var count = 0
        package var through: Int64 = 0
        /// The cursor that still needs the history that follows, if any.
        package var holder: String?
        /// Whether there is more to delete, in another transaction.
        package var hasMore = false
    }

    /// The approximate number of log rows deleted in one transaction. Other writers wait for it.
    package static let batch: Int64 = 10_000

    /// Deletes history up to this transaction, as far as every cursor has passed it. The newest transaction mark stays,
    /// so that IDs are never reused.
    ///
    /// - Parameter limit: The approximate maximum number of rows to delete. For a larger transaction, the mark is
    ///   deleted first, so that no reader sees the transaction any more. The following calls delete its rows.
    package static func prune(_ db: Database, through wanted: Int64, limit: Int64 = batch) throws -> Outcome {
        let (end, holder) = try reach(db, wanted)
        let pruned = try Meta.integer(db, MetaKey.prunedThrough) ?? 0
        var outcome = Outcome(through: pruned, holder: holder)
        guard let first = try Int64.fetchOne(db, sql: "SELECT min(id) FROM \(InternalName.log)") else { return outcome }
        // The rest of a large transaction whose mark is already deleted.
        guard first > pruned else {
            let last = min(pruned, first + limit - 1)
            outcome.count = try delete(db, through: last)
            outcome.hasMore = true
            return outcome
        }
        let slice = first.addingReportingOverflow(limit - 1)
        let near = slice.overflow ? end : min(end, slice.partialValue)
        guard let mark = try mark(db, after: pruned, near: near, through: end) else { return outcome }
        let isLarge = mark > near
        guard try RowHashes.prune(db, through: mark, limit: limit) else {
            outcome.hasMore = true
            return outcome
        }
        try PrunedStamping.run(db, through: mark)
        if isLarge {
            try db.execute(sql: "DELETE FROM \(InternalName.log) WHERE id = ?", arguments: [mark])
            outcome.count = db.changesCount
        } else {
            outcome.count = try delete(db, through: mark)
        }
        try db.execute(sql: "DELETE FROM \(InternalName.retired) WHERE until <= ?", arguments: [mark])
        try Meta.set(db, MetaKey.prunedThrough, mark)
        outcome.through = mark
        outcome.hasMore = isLarge || mark < end
        return outcome
    }

    /// Returns the last transaction mark up to `near`, or else the first one up to `end`.
    static func mark(_ db: Database, after first: Int64, near: Int64, through end: Int64) throws -> Int64? {
        func find(_ what: String, _ last: Int64) throws -> Int64? {
            try Int64.fetchOne(
                db, sql: "SELECT \(what)(id) FROM \(InternalName.log) WHERE e = 0 AND id > ? AND id <= ?",
                arguments: [first, last])
        }
        return try find("max", near) ?? (near < end ? find("min", end) : nil)
    }

    /// Returns the ID up to which the history may be deleted, and the cursor that keeps the rest, if any.
    package static func reach(_ db: Database, _ wanted: Int64 = .max) throws -> (end: Int64, holder: String?) {
        let newest =
            try Int64.fetchOne(db, sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 ORDER BY id DESC LIMIT 1") ?? 0
        let end = min(wanted, newest - 1)
        guard
            let cursor = try Row.fetchOne(
                db, sql: "SELECT name, position FROM \(InternalName.cursors) ORDER BY position LIMIT 1"),
            (cursor["position"] as Int64) < end
        else { return (end, nil) }
        return (cursor["position"], cursor["name"])
    }

    /// Appends an empty transaction to the log if the newest one is to be deleted and nothing keeps it. Without a last
    /// row, SQLite would assign its ID again (docs/decisions/0054). An empty transaction is not part of the history.
    ///
    /// - Parameters:
    ///   - wanted: The transaction up to which history is to be deleted.
    ///   - condition: The transactions to be deleted. Nil means all.
    static func append(
        _ db: Database, freeing wanted: Int64 = .max, choosing condition: String? = nil,
        _ arguments: StatementArguments = []
    ) throws {
        // If the last row isn't a mark, a transaction is still open.
        guard
            let last = try Row.fetchOne(
                db, sql: "SELECT id, e, r, t FROM \(InternalName.log) ORDER BY id DESC LIMIT 1"),
            last["e"] == 0
        else { return }
        let newest: Int64 = last["id"]
        guard newest <= wanted, last["r"] != newest else { return }
        let isHeld = "EXISTS (SELECT 1 FROM \(InternalName.cursors) WHERE position < ?)"
        let isChosen = "EXISTS (SELECT 1 FROM \(InternalName.log) AS s WHERE id = ? AND (\(condition ?? "TRUE")))"
        guard
            try Bool.fetchOne(
                db, sql: "SELECT NOT \(isHeld) AND \(isChosen)", arguments: [newest, newest] + arguments) ?? false
        else { return }
        try db.execute(
            sql:
                """
                INSERT INTO \(InternalName.log)(id, e, r, k, t)
                VALUES (?1, 0, ?1, \(ChangeKind.Mark.transaction), ?2)
                """,
            arguments: [newest + 1, last["t"] as Int64])
    }

    private static func delete(_ db: Database, through last: Int64) throws -> Int {
        try db.execute(sql: "DELETE FROM \(InternalName.log) WHERE id <= ?", arguments: [last])
        return db.changesCount
    }

    /// Returns the ID before the first transaction at this time or later, in milliseconds since 1970. Later
    /// transactions look older if they were written elsewhere, or if a clock was wrong.
    ///
    /// - Parameter first: Transactions before this one are older.
    package static func mark(_ db: Database, before time: Int64, from first: Int64 = 0) throws -> Int64 {
        let younger = try Int64.fetchOne(
            db, sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 AND id >= ? AND t >= ? ORDER BY id LIMIT 1",
            arguments: [first, time])
        return younger.map { $0 - 1 } ?? .max
    }

    /// Returns the total size of the log's pages.
    static func logBytes(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(
            db, sql: "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = ? AND aggregate = TRUE",
            arguments: [InternalName.log]) ?? 0
    }

    /// Returns the ID up to which history must be deleted so that the log keeps about this many bytes, estimated from
    /// the average size of its rows. 0 if the log is no larger.
    ///
    /// - Parameter known: The log's size. Nil: it is measured, which reads the whole log.
    package static func mark(_ db: Database, keepingBytes bytes: Int64, of known: Int64? = nil) throws -> Int64 {
        let size = try known ?? logBytes(db)
        guard size > bytes, let first = try Int64.fetchOne(db, sql: "SELECT min(id) FROM \(InternalName.log)"),
            let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)")
        else { return 0 }
        let share = Double(size - bytes) / Double(size)
        return first + Int64(Double(last - first) * share)
    }
}
