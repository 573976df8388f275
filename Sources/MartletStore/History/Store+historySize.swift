import GRDB

/// The size of a store's history.
package struct HistorySize: Sendable, Equatable {
    /// The size of the log's pages in the file.
    package var bytes: Int64
    package var transactions: Int64

    package init(bytes: Int64, transactions: Int64) {
        self.bytes = bytes
        self.transactions = transactions
    }
}

extension Store {
    /// Measures the history. Reads the whole log, so don't call it every second.
    package func historySize() throws -> HistorySize {
        try read { db in
            HistorySize(
                bytes: try Pruner.logBytes(db),
                transactions: try Int64.fetchOne(
                    db, sql: "SELECT count(*) FROM \(InternalName.log) WHERE e = 0 AND \(HistoryClause.isShown)") ?? 0)
        }
    }
}
