import Synchronization

/// Tracks whether results are stale, and notifies observers when they become so. May be used from any thread.
final class ResultsSignal: Sendable {
    private struct State {
        var isStale = false
        var announce: (@Sendable () -> Void)?
        var streams: [Int: AsyncStream<Void>.Continuation] = [:]
        var next = 0
    }

    private let state = Mutex(State())

    var isStale: Bool { state.withLock { $0.isStale } }

    func announces(_ announce: @escaping @Sendable () -> Void) { state.withLock { $0.announce = announce } }

    func fetched() { state.withLock { $0.isStale = false } }

    /// Notifies once, until the results have been read.
    func changed() {
        let (announce, streams) = state.withLock {
            state -> ((@Sendable () -> Void)?, [AsyncStream<Void>.Continuation]) in
            guard !state.isStale else { return (nil, []) }
            state.isStale = true
            return (state.announce, Array(state.streams.values))
        }
        announce?()
        for stream in streams { stream.yield() }
    }

    func stream() -> AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let (number, isStale) = state.withLock { state in
                state.next += 1
                state.streams[state.next] = continuation
                return (state.next, state.isStale)
            }
            if isStale { continuation.yield() }
            continuation.onTermination = { [weak self] _ in
                self?.state.withLock { $0.streams[number] = nil }
            }
        }
    }

    func finish() {
        for stream in state.withLock({ Array($0.streams.values) }) { stream.finish() }
    }
}
