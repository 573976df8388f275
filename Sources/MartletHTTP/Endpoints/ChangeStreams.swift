import Logging
import MartletAgent
import MartletStore
import Synchronization

/// Streams the history to HTTP clients as server-sent events, on a connection to the store of its own.
///
/// Each stream reads a page of the history when its client has taken the one before. No transaction on the store is
/// open in between. Clients keep their position themselves, so no stream keeps history from being deleted.
/// https://html.spec.whatwg.org/multipage/server-sent-events.html
package final class ChangeStreams: Sendable {
    /// The most streams at a time. Each holds up to a page of the history in memory.
    package static let most = RequestPlaces.most / 2

    private struct State {
        var streams: [ObjectIdentifier: Weak] = [:]
        /// Exists while there are streams.
        var watch: CommitWatch?
    }

    private struct Weak {
        weak var stream: ChangeStream?
    }

    private let path: String
    private let log: Logger
    private let waiting: RequestPlaces
    private let places = RequestPlaces(most: ChangeStreams.most)
    private let store = Mutex<Store?>(nil)
    private let state = Mutex(State())

    /// - Parameter waiting: the places of all requests that keep a connection.
    init(path: String, waiting: RequestPlaces, log: Logger) {
        self.path = path
        self.waiting = waiting
        self.log = log
    }

    /// Begins a stream, and reads its first page.
    ///
    /// - Parameter isAllowed: whether values may still be shown. The stream asks before each page, and ends otherwise.
    /// - Returns: nil if there are too many.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the request is invalid,
    ///   `.historyTokenExpired` if the history after its token is not complete; or if the store can't be read.
    func begin(_ request: HTTPRequest, while isAllowed: @escaping @Sendable () -> Bool) throws -> ChangeStream? {
        let query = try ChangesRequest(request).query
        guard let all = waiting.take(), let own = places.take() else { return nil }
        let position = try query.after ?? newest()
        let stream = ChangeStream(self, [all, own], query, at: position, while: isAllowed)
        // Watched before the first page is read: no commit after that goes unnoticed.
        try add(stream)
        try stream.readFirst()
        return stream
    }

    /// Returns the position after the newest transaction.
    func newest() throws -> HistoryToken { try withStore(HistoryTail.newest) }

    fileprivate func page(_ query: HistoryQuery, after position: HistoryToken) throws -> HistoryPage {
        try withStore { store in
            // The agent ends then. Until it does, no stream begins.
            try store.checkIsInPlace()
            return try store.historyPage(query, after: position)
        }
    }

    fileprivate func note(_ error: any Error) {
        log.warning("Stream of changes ended", metadata: ["error": "\(error)"])
    }

    private func withStore<T: Sendable>(_ body: (Store) throws -> T) throws -> T {
        try store.withLock { store in
            if let store { return try body(store) }
            var configuration = StoreConfiguration()
            configuration.isReadOnly = true
            // This connection reads what was just written.
            configuration.cacheKiB = 256
            let opened = try Store(path: path, configuration: configuration)
            store = opened
            return try body(opened)
        }
    }

    private func add(_ stream: ChangeStream) throws {
        try state.withLock { state in
            if state.watch == nil {
                state.watch = try CommitWatch(store: path) { [weak self] in self?.noteCommit() }
            }
            state.streams[ObjectIdentifier(stream)] = Weak(stream: stream)
        }
    }

    fileprivate func remove(_ stream: ObjectIdentifier) {
        // Released outside of the lock.
        _ = state.withLock { state -> CommitWatch? in
            state.streams[stream] = nil
            guard state.streams.isEmpty else { return nil }
            defer { state.watch = nil }
            return state.watch
        }
    }

    private func noteCommit() {
        let streams = state.withLock { $0.streams.values.compactMap(\.stream) }
        for stream in streams { stream.noteCommit() }
    }
}

/// One client's stream of changes.
final class ChangeStream: HTTPStream {
    private struct State {
        var position: HistoryToken
        /// Read, and not returned yet.
        var first: String?
        /// Whether something was committed since the last call of `whenChanged`.
        var hasChanged = false
        var wake: (@Sendable () -> Void)?
    }

    private let streams: ChangeStreams
    private let places: [RequestPlaces.Place]
    private let query: HistoryQuery
    private let isAllowed: @Sendable () -> Bool
    private let state: Mutex<State>

    fileprivate init(
        _ streams: ChangeStreams, _ places: [RequestPlaces.Place], _ query: HistoryQuery, at position: HistoryToken,
        while isAllowed: @escaping @Sendable () -> Bool
    ) {
        self.streams = streams
        self.places = places
        self.query = query
        self.isAllowed = isAllowed
        state = Mutex(State(position: position))
    }

    deinit { streams.remove(ObjectIdentifier(self)) }

    /// How long a client waits before it connects again.
    private static let retry = "retry: 1000\n"

    /// - Throws: the errors of ``ChangeStreams/begin(_:while:)``.
    fileprivate func readFirst() throws {
        // Even a client that has not received a transaction yet knows where to continue.
        let begin = Self.retry + Self.position(state.withLock { $0.position })
        let text = try begin + read()
        state.withLock { $0.first = text }
    }

    func next() -> HTTPStreamPart {
        guard isAllowed() else { return .last(": Values are not shown any more.\n\n") }
        let first = state.withLock { state in
            defer { state.first = nil }
            return state.first
        }
        if let first { return .some(first) }
        do {
            let text = try read()
            return text.isEmpty ? .nothing : .some(text)
        } catch let error as StoreError where error.code == .historyTokenExpired {
            return .last((try? reload(error)) ?? "")
        } catch {
            streams.note(error)
            let isMoved = (error as? StoreError)?.code == .moved
            return .last(isMoved ? ": The store was moved or replaced.\n\n" : ": The store can't be read.\n\n")
        }
    }

    func whenChanged(_ wake: @escaping @Sendable () -> Void) {
        let isDue = state.withLock { state in
            state.wake = state.hasChanged ? nil : wake
            defer { state.hasChanged = false }
            return state.hasChanged
        }
        if isDue { wake() }
    }

    fileprivate func noteCommit() {
        let wake = state.withLock { state in
            defer { state.wake = nil }
            if state.wake == nil { state.hasChanged = true }
            return state.wake
        }
        wake?()
    }

    /// Returns the next page as events. Empty if there is nothing.
    private func read() throws -> String {
        let position = state.withLock { $0.position }
        let page = try streams.page(query, after: position)
        var text = ""
        for transaction in page.transactions {
            text += "id: \(transaction.token)\ndata: \(try JSON.line(transaction.document))\n\n"
        }
        // The client need not begin again before transactions that don't match.
        if page.end != page.transactions.last?.token ?? position { text += Self.position(page.end) }
        state.withLock { $0.position = page.end }
        return text
    }

    /// An event without data: the client remembers the ID, and does nothing.
    private static func position(_ token: HistoryToken) -> String { "id: \(token)\n\n" }

    private func reload(_ error: StoreError) throws -> String {
        "event: reload\ndata: \(try JSON.line(Self.reloadDocument(error, streams.newest())))\n\n"
    }

    /// What a client gets whose position is not in the history any more.
    static func reloadDocument(_ error: StoreError, _ newest: HistoryToken) -> [String: Any?] {
        [
            "event": "reload", "token": newest.description, "message": error.message,
            "hint": "Load the rows from their tables, then continue with /changes?after=TOKEN.",
        ]
    }
}
