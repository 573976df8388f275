/// How far a reader that follows the history has got. Pure.
///
/// A transaction is handed out, and later acknowledged: the reader won't need it again. The cursor may be where nothing
/// before it is unacknowledged. Transactions that don't match the reader's query need no acknowledgement.
package struct TailProgress: Sendable {
    /// Where the next page begins.
    package private(set) var end: HistoryToken
    /// The last transaction that was handed out, if it is not acknowledged yet.
    private var unacknowledged: HistoryToken?
    /// The last transaction that was ever handed out.
    private var last: HistoryToken?

    package init(at position: HistoryToken) { end = position }

    /// Whether everything that was handed out is acknowledged.
    package var isSettled: Bool { unacknowledged == nil }

    /// Notes the last transaction of a page. To be called before any of the page is handed out.
    package mutating func handOut(through newest: HistoryToken) {
        unacknowledged = newest
        last = newest
    }

    /// Notes that all of a page was handed out, and where the next one begins.
    ///
    /// - Returns: Where the cursor may be now. Nil: where it is.
    package mutating func finish(at end: HistoryToken) -> HistoryToken? {
        self.end = end
        return isSettled ? end : nil
    }

    /// Notes that the reader needs neither this transaction nor those before it any more.
    ///
    /// - Returns: Where the cursor may be now.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the transaction was not handed out.
    package mutating func acknowledge(_ token: HistoryToken) throws -> HistoryToken {
        guard let last, token.store == last.store, token <= last else {
            throw StoreError(
                .invalidArgument, "The token \(token) was acknowledged, but its transaction was not handed out.",
                hint: "Acknowledge a transaction with the token that it came with.")
        }
        guard token == last else { return token }
        unacknowledged = nil
        return max(end, token)
    }
}
