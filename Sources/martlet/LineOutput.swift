import CMartletSystem
import Foundation
import MartletStore

/// Writes to standard output for a program that reads it while it is written. Nothing is buffered here.
struct LineOutput {
    /// Nobody reads standard output any more.
    struct Closed: Error {}

    /// From here on, writing to a pipe that nobody reads is an error, and no longer ends the program.
    init() { signal(SIGPIPE, SIG_IGN) }

    /// Returns once the system has all of the text.
    ///
    /// - Throws: ``Closed``, or ``/MartletCore/StoreError`` with code `.diskFull` or `.invalidArgument`.
    func write(_ text: String) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            switch (count, errno) {
            case (0..., _): rest = rest.dropFirst(count)
            case (_, EINTR): break
            case (_, EAGAIN): wait(for: Int16(POLLOUT))
            case (_, EPIPE): throw Closed()
            case (_, let error): throw Self.failure(error)
            }
        }
    }

    /// Writes what `print` has buffered. Swift ignores the errors of `print`.
    ///
    /// - Throws: ``/MartletCore/StoreError`` as ``write(_:)`` if anything that was printed is lost.
    static func flush() throws {
        let error = martlet_flush_output()
        // Nobody reads any more.
        if error != 0, error != EPIPE { throw failure(error) }
    }

    private static func failure(_ error: Int32) -> StoreError {
        let reason = error > 0 ? ": \(String(cString: strerror(error)))" : ""
        return StoreError(
            error == ENOSPC ? .diskFull : .invalidArgument, "Standard output can't be written\(reason).")
    }

    /// Blocks the calling thread until nobody reads standard output any more. For ever, if it is a file.
    func waitUntilClosed() { wait(for: 0) }

    private func wait(for events: Int16) {
        var output = pollfd(fd: STDOUT_FILENO, events: events, revents: 0)
        while poll(&output, 1, -1) < 0, errno == EINTR {}
    }
}
