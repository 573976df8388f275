import Synchronization

/// Follows the history for one reader. A cursor remembers how far the reader has got.
///
/// The reader gets each transaction at least once, whenever it ends: the cursor moves past a transaction only after the
/// reader has acknowledged it, or, if it doesn't acknowledge, after the page with the transaction was handed out. While
/// the cursor exists, history after it is not deleted.
///
/// One thread may call ``read(_:)`` while another one calls ``acknowledge(_:)``.
package final class HistoryTail: Sendable {
    package enum Start: String, Sendable, CaseIterable {
        /// Everything that was ever committed. If history was deleted, the reader has to load the rows instead.
        case oldest
        /// What is committed from now on.
        case newest
    }

    private let store: Store
    private let query: HistoryQuery
    private let acknowledges: Bool
    private let progress: Mutex<TailProgress>
    private let cursor: String?
    /// Where the cursor is. Locked during a move, so that two threads don't move it at once.
    private let position: Mutex<HistoryToken>

    /// Finds out where to begin, and registers the cursor there, before anything is read.
    ///
    /// - Parameters:
    ///   - query: What to read. If it says where to begin, so it is done, and the cursor is moved there. Otherwise the
    ///     reader begins at the cursor.
    ///   - cursor: The cursor's name. Nil: none.
    ///   - start: Where to begin otherwise.
    ///   - acknowledges: Whether ``acknowledge(_:)`` will be called.
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if the history after that position is not
    ///   complete: the reader has to load the rows, and to begin after ``newest(in:)``. `.invalidArgument` for a name
    ///   that no reader may have.
    package init(
        _ store: Store, _ query: HistoryQuery, cursor: String?, start: Start, acknowledges: Bool = false
    ) throws {
        self.store = store
        self.query = query
        self.cursor = cursor
        self.acknowledges = acknowledges
        let first = start == .oldest ? store.beginning : try Self.newest(in: store)
        let place =
            try cursor.map { try store.beginReading($0, at: query.after, else: first) } ?? query.after ?? first
        progress = Mutex(TailProgress(at: place))
        position = Mutex(place)
    }

    /// Returns the position after the newest transaction.
    package static func newest(in store: Store) throws -> HistoryToken { try store.lastToken() ?? store.beginning }

    /// Whether everything that was handed out is acknowledged, and the cursor, if any, has moved past it.
    package var isSettled: Bool {
        position.withLock { position in
            progress.withLock { $0.isSettled && (cursor == nil || position >= $0.end) }
        }
    }

    /// Reads the next page and hands its transactions out.
    ///
    /// - Parameter handOut: Is called for each transaction. If it throws, the cursor stays before the page.
    /// - Returns: Whether there is more.
    /// - Throws: The errors of ``Store/checkIsInPlace()`` and
    ///   ``Store/historyPage(_:after:rowCount:byteCount:)``, of `handOut`, and of ``acknowledge(_:)``.
    package func read(_ handOut: (HistoryTransaction) throws -> Void) throws -> Bool {
        try store.checkIsInPlace()
        let page = try store.historyPage(query, after: progress.withLock { $0.end })
        let last = page.transactions.last?.token
        if let last { progress.withLock { $0.handOut(through: last) } }
        for transaction in page.transactions { try handOut(transaction) }
        let reached = try progress.withLock { progress in
            if !acknowledges, let last { _ = try progress.acknowledge(last) }
            return progress.finish(at: page.end)
        }
        if let reached { try move(to: reached) }
        return page.hasMore
    }

    /// Notes that the reader needs neither this transaction nor those before it any more.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the transaction was not handed out, or if
    ///   the cursor was moved or removed meanwhile.
    package func acknowledge(_ token: HistoryToken) throws {
        try move(to: progress.withLock { try $0.acknowledge(token) })
    }

    private func move(to target: HistoryToken) throws {
        guard let cursor else { return }
        try position.withLock { position in
            guard target > position else { return }
            guard try store.moveCursor(cursor, from: position, to: target) else {
                throw StoreError(
                    .invalidArgument, "The cursor \(cursor) was moved or removed by somebody else.",
                    hint: "Give each reader a cursor of its own. If the cursor was removed, start the reader again.")
            }
            position = target
        }
    }
}
