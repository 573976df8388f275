import GRDB

extension Pruner {
    /// A part of a deletion from anywhere in the history.
    struct Part {
        /// Rows of the log.
        var count = 0
        /// Where the next part begins. Nil where there is nothing more to delete.
        var next: Int64?
        /// The cursor that needs what follows, where there is one.
        var holder: String?
    }

    /// Deletes transactions that a condition holds for, as far as every cursor has passed them, the newest left out.
    ///
    /// What was recorded in place of the log (prints, registrations) first takes in everything up to the last of them: it may not find later
    /// that the log lacks something.
    ///
    /// - Parameters:
    ///   - first: transactions before it were deleted by earlier parts, or stay.
    ///   - limit: about how many rows of the log are read or deleted.
    static func prune(
        _ db: Database, _ clause: HistoryClause, from first: Int64, limit: Int64 = batch
    ) throws -> Part {
        let (end, holder) = try reach(db)
        var part = Part(holder: holder)
        let condition = clause.condition.map { "AND (\($0))" } ?? ""
        let arguments = StatementArguments(clause.arguments.map(\.databaseValue))
        func chosen(_ what: String, _ rest: String) throws -> [Row] {
            try Row.fetchAll(
                db,
                sql: """
                    SELECT \(what) FROM \(InternalName.log) AS s WHERE e = 0 AND id >= ? AND id <= ? \(condition) \(rest)
                    """, arguments: [first, end] + arguments)
        }
        let last: Int64? = try chosen("max(id) AS last", "").first?["last"]
        guard let last else { return part }
        guard try RowPrints.prune(db, through: last, limit: limit), try register(db, through: last, limit) else {
            part.next = first
            return part
        }
        // The mark and the rows before it.
        for row in try chosen("id, r", "ORDER BY id LIMIT \(limit)") {
            guard part.count < limit else {
                part.next = row["id"]
                return part
            }
            try db.execute(
                sql: "DELETE FROM \(InternalName.log) WHERE id >= ? AND id <= ?", arguments: [row["r"], row["id"]])
            part.count += db.changesCount
            part.next = (row["id"] as Int64) + 1
        }
        return part
    }

    /// Takes up what nothing has registered, in parts of whole transactions.
    ///
    /// - Returns: false where this is to be called again first.
    private static func register(_ db: Database, through last: Int64, _ limit: Int64) throws -> Bool {
        let registered = try Meta.integer(db, MetaKey.registered) ?? 0
        let mark = try Int64.fetchOne(
            db,
            sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 AND id > ? AND id <= ? ORDER BY id DESC LIMIT 1",
            arguments: [registered, min(last, registered + limit)])
        let next =
            try mark
            ?? Int64.fetchOne(
                db, sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 AND id > ? ORDER BY id LIMIT 1",
                arguments: [registered])
        guard let next, next <= last else { return true }
        try PrunedRegistration.run(db, through: next)
        return next == last
    }
}
