import GRDB

extension Pruner {
    /// Deletes the transactions that match a condition, as far as every cursor has passed them.
    ///
    /// First the data that is derived from the log (value hashes, stamps) takes in everything up to the last of these
    /// transactions. Later it could no longer tell that the log lacks something.
    ///
    /// - Parameters:
    ///   - first: Transactions before this one were deleted by earlier calls, or stay. The call advances it.
    ///   - limit: The approximate maximum number of log rows to read or delete.
    static func prune(
        _ db: Database, _ clause: HistoryClause, from first: inout Int64, limit: Int64 = batch
    ) throws -> Outcome {
        let arguments = StatementArguments(clause.arguments.map(\.databaseValue))
        try append(db, choosing: clause.condition, arguments)
        let (end, holder) = try reach(db)
        var outcome = Outcome(through: try Meta.integer(db, MetaKey.prunedThrough) ?? 0, holder: holder)
        let range: StatementArguments = [first, end]
        // Also delete empty transactions that are no longer the newest.
        let condition = clause.condition.map { "AND ((\($0)) OR r = id)" } ?? ""
        func chosen(_ what: String, _ rest: String) throws -> [Row] {
            try Row.fetchAll(
                db,
                sql: """
                    SELECT \(what) FROM \(InternalName.log) AS s WHERE e = 0 AND id >= ? AND id <= ?
                    \(condition) \(rest)
                    """, arguments: range + arguments)
        }
        let last: Int64? = try chosen("max(id) AS last", "").first?["last"]
        guard let last else { return outcome }
        outcome.hasMore = true
        guard try RowHashes.prune(db, through: last, limit: limit), try register(db, through: last, limit) else {
            return outcome
        }
        // The mark and its changes.
        for row in try chosen("id, r", "ORDER BY id LIMIT \(limit)") {
            guard outcome.count < limit else { return outcome }
            try db.execute(
                sql: "DELETE FROM \(InternalName.log) WHERE id >= ? AND id <= ?", arguments: [row["r"], row["id"]])
            outcome.count += db.changesCount
            first = (row["id"] as Int64) + 1
        }
        outcome.hasMore = first <= last
        return outcome
    }

    /// Stamps the changes that aren't stamped yet, in parts of whole transactions.
    ///
    /// - Returns: False if this must be called again before anything is deleted.
    private static func register(_ db: Database, through last: Int64, _ limit: Int64) throws -> Bool {
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        let near = min(last, stamped + limit)
        guard let next = try mark(db, after: stamped, near: near, through: last) else { return true }
        try PrunedStamping.run(db, through: next)
        return next == last
    }
}
