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

/// Reads acknowledgements from standard input: tokens, one on each line.
enum TailInput {
    /// No token is longer.
    private static let mostLineBytes = 100

    /// Reads on a thread of its own, until the input is closed.
    static func read(for tail: HistoryTail, _ ending: TailEnding) {
        Thread.detachNewThread {
            do {
                try acknowledge(tail, ending)
                ending.end()
            } catch {
                ending.end(error)
            }
        }
    }

    private static func acknowledge(_ tail: HistoryTail, _ ending: TailEnding) throws {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var rest: [UInt8] = []
        while true {
            let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest += buffer[..<count]
            // Of several tokens, the last one includes the others.
            guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else {
                guard rest.count <= mostLineBytes else { throw invalid("a line of more than \(mostLineBytes) bytes") }
                continue
            }
            let line = rest[..<end].split(separator: UInt8(ascii: "\n")).last ?? []
            rest.removeSubrange(...end)
            let text = String(decoding: line.prefix(mostLineBytes), as: UTF8.self)
            guard let token = HistoryToken(text) else { throw invalid(text) }
            try tail.acknowledge(token)
            ending.noteAcknowledgement(tail)
        }
    }

    private static func invalid(_ text: String) -> StoreError {
        StoreError(
            .invalidArgument, "Standard input is not a list of tokens: \(text)",
            hint: "With --acknowledge, write the token of each transaction that needs not be printed again.")
    }
}
