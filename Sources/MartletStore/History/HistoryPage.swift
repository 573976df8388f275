/// A part of the history that was read in one SQLite transaction.
package struct HistoryPage: Sendable {
    /// The transactions that match the query, oldest first.
    package var transactions: [HistoryTransaction]
    /// Where the next page begins. Other transactions before it don't match.
    package var end: HistoryToken
    /// Whether the history continued when the page was read.
    package var hasMore: Bool

    /// About how many rows of the log a page covers. A larger transaction is a page of its own.
    package static let rowCount: Int64 = 1_000
    /// About how large the values of a page are. A larger transaction is the last one of its page.
    package static let byteCount = 256 << 10
}

extension Store {
    /// The position before the first transaction. It has expired as soon as any history is deleted.
    package var beginning: HistoryToken { HistoryToken(store: identifier, transaction: 0) }

    /// Reads the next part of the history.
    ///
    /// Unlike ``fetchHistory(_:)``, it takes memory for one page, or for one transaction, however long the history is,
    /// and returns how far it has read, however few transactions match. So a reader of few transactions doesn't keep
    /// all the others from being deleted. Closes a transaction of what other programs committed first, unless the store
    /// is read-only.
    ///
    /// - Parameters:
    ///   - query: Its `after`, `through`, `newestFirst` and `limit` have no effect.
    ///   - after: Where to begin.
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if the token belongs to another store or
    ///   is ahead of this one, or if history after it has been deleted; `.invalidArgument` for an unknown table.
    package func historyPage(
        _ query: HistoryQuery, after: HistoryToken, rowCount: Int64 = HistoryPage.rowCount,
        byteCount: Int = HistoryPage.byteCount
    ) throws -> HistoryPage {
        if !configuration.isReadOnly { try closeForeignTransactions() }
        return try read { db in
            try after.checkIsAvailable(identifier, db)
            let newest = try HistoryToken.newestTransaction(db)
            let slice = after.transaction.addingReportingOverflow(rowCount)
            let near = slice.overflow ? newest : min(newest, slice.partialValue)
            let mark = try Pruner.mark(db, after: after.transaction, near: near, through: newest)
            var end = HistoryToken(store: identifier, transaction: mark ?? after.transaction)
            var query = query
            query.after = after
            query.through = end
            query.newestFirst = false
            query.limit = nil
            // If there is nothing to fetch, this still checks the query.
            let (found, areAll) = try HistoryReader(db, store: identifier).fetch(query, bytes: byteCount)
            if !areAll, let last = found.last { end = last.token }
            return HistoryPage(transactions: found, end: end, hasMore: end.transaction < newest)
        }
    }
}
