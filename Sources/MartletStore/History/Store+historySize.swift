import GRDB

/// How large a store's history is.
package struct HistorySize: Sendable, Equatable {
    /// Pages of the log, as far as they are in the file.
    package var bytes: Int64
    package var transactions: Int64
}

extension Store {
    /// Reads the whole log: not for every second.
    package func historySize() throws -> HistorySize {
        try read { db in
            HistorySize(
                bytes: try Pruner.logBytes(db),
                transactions: try Int64.fetchOne(
                    db, sql: "SELECT count(*) FROM \(InternalName.log) WHERE e = 0 AND \(HistoryClause.isShown)") ?? 0)
        }
    }
}
