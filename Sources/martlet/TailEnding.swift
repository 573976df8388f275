import Dispatch
import MartletStore
import Synchronization

/// Why `history tail` ends: standard output was closed, its reader has acknowledged everything, or something failed.
final class TailEnding: Sendable {
    private struct State {
        var isDone = false
        var hasReadAll = false
        var error: (any Error)?
    }

    private let state = Mutex(State())
    private let done = DispatchGroup()
    private let stop: @Sendable () -> Void

    /// - Parameter stop: called at the end, on the thread that notices it first.
    init(_ stop: @escaping @Sendable () -> Void) {
        self.stop = stop
        done.enter()
    }

    var isDone: Bool { state.withLock { $0.isDone } }
    var error: (any Error)? { state.withLock { $0.error } }

    /// Ends the command, with the first error if there are several.
    func end(_ error: (any Error)? = nil) {
        let isFirst = state.withLock { state in
            if state.error == nil { state.error = error }
            defer { state.isDone = true }
            return !state.isDone
        }
        guard isFirst else { return }
        stop()
        done.leave()
    }

    /// Waits until the reader has acknowledged everything, or has gone. Nothing more is read.
    func waitUntilSettled(_ tail: HistoryTail) {
        state.withLock { $0.hasReadAll = true }
        if !tail.isSettled { done.wait() }
    }

    /// Ends the command if nothing more is read, and everything is acknowledged.
    func noteAcknowledgement(_ tail: HistoryTail) {
        if state.withLock({ $0.hasReadAll }), tail.isSettled { end() }
    }
}
