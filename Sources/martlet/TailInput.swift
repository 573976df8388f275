import CMartletSystem
import Foundation
import MartletStore
import Synchronization

/// Reads acknowledgements from standard input: tokens, one on each line.
final class TailInput: Sendable {
    private struct State {
        /// The beginning of a line.
        var rest: [UInt8] = []
        /// Whether the input is closed.
        var isClosed = false
        /// Why a line is invalid, or could not be acknowledged.
        var failure: (any Error)?
    }

    /// No token is longer.
    private static let mostLineBytes = 100

    private let tail: HistoryTail
    private let ending: TailEnding
    private let state = Mutex(State())

    /// Reads on a thread of its own, until the input is closed, which ends the command.
    init(for tail: HistoryTail, _ ending: TailEnding) {
        self.tail = tail
        self.ending = ending
        Thread.detachNewThread { [self] in
            do {
                while Self.isReadable(waiting: -1), try take() { ending.noteAcknowledgement(self.tail) }
                ending.end()
            } catch {
                ending.end(error)
            }
        }
    }

    /// Acknowledges what was written so far. To be called at the end: a reader that goes writes its last tokens, and
    /// then closes its pipes, and the command may notice the latter first.
    func takeRest() throws {
        // The first call waits for the other thread, which may have read tokens and not yet moved the cursor.
        while try take(), Self.isReadable(waiting: 0) {}
    }

    /// Acknowledges what can be read at once. The lock is held until the cursor has moved.
    ///
    /// - Returns: False at the end.
    /// - Throws: What has failed, in this call or in one before it.
    private func take() throws -> Bool {
        try state.withLock { state in
            if let failure = state.failure { throw failure }
            guard !state.isClosed else { return false }
            // The other thread may have read it.
            guard Self.isReadable(waiting: 0) else { return true }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { return true }
            guard count > 0 else {
                state.isClosed = true
                return false
            }
            state.rest += buffer[..<count]
            do {
                let tokens = try Self.tokens(&state.rest)
                // It includes the others.
                if let newest = tokens.max() { try ending.withStore { try tail.acknowledge(newest) } }
            } catch {
                state.failure = error
                throw error
            }
            return true
        }
    }

    /// Removes the complete lines.
    private static func tokens(_ text: inout [UInt8]) throws -> [HistoryToken] {
        let newline = UInt8(ascii: "\n")
        guard let end = text.lastIndex(of: newline) else {
            guard text.count <= mostLineBytes else { throw invalid("a line of more than \(mostLineBytes) bytes") }
            return []
        }
        let lines = text[..<end].split(separator: newline)
        text.removeSubrange(...end)
        return try lines.map { line in
            let line = String(decoding: line.prefix(mostLineBytes), as: UTF8.self)
            guard let token = HistoryToken(line) else { throw invalid(line) }
            return token
        }
    }

    /// - Parameter milliseconds: Less than 0: waits until there is something to read, or the input is closed.
    private static func isReadable(waiting milliseconds: Int32) -> Bool {
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        while true {
            let count = poll(&input, 1, milliseconds)
            guard count < 0, errno == EINTR else { return count > 0 }
        }
    }

    private static func invalid(_ text: String) -> StoreError {
        StoreError(
            .invalidArgument, "Standard input is not a list of tokens: \(text)",
            hint: "With --acknowledge, write the token of each transaction that needs not be printed again.")
    }
}
