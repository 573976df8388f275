import Dispatch
import Foundation
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
    private let waitsForLock: Bool
    private let stop: @Sendable () -> Void

    /// The pause between two attempts to use a locked store, in seconds. Each attempt waits for the store, too.
    private static let pause = 0.02

    /// - Parameters:
    ///   - waitsForLock: whether to wait for as long as another program keeps the store locked.
    ///   - stop: called at the end, on the thread that notices it first.
    init(waitsForLock: Bool, _ stop: @escaping @Sendable () -> Void) {
        self.waitsForLock = waitsForLock
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

    /// Uses the store, again and again while another program keeps it locked, until the command ends.
    func withStore<T>(_ body: () throws -> T) throws -> T {
        while true {
            do {
                return try body()
            } catch let error as StoreError where error.code == .busy && waitsForLock && !isDone {
                Thread.sleep(forTimeInterval: Self.pause)
            }
        }
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
