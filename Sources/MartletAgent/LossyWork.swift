import Foundation
package import Logging
import MartletSync

/// Long work over a connection that is lost now and then. It continues where it stopped, on a new connection.
///
/// Blocks the calling thread.
package struct LossyWork {
    /// How long to keep retrying without progress.
    package var patience = Duration.seconds(60)
    package var now: () -> ContinuousClock.Instant = { .now }
    package var pause: (Duration) -> Void = { Thread.sleep(forTimeInterval: $0 / .seconds(1)) }

    package init() {}

    /// Runs `attempt`, and repeats it if it fails with a retriable error of the bus after it has made progress.
    ///
    /// - Parameters:
    ///   - notice: the log message before each further attempt.
    ///   - attempt: continues where the previous attempt stopped. Calls its argument whenever it has made progress.
    /// - Throws: the error of `attempt`: at once if there never was any progress, so that a wrong address is reported
    ///   immediately, and for every error except a retriable ``/MartletBus/BusError``; otherwise once there was no
    ///   progress for ``patience`` since the first failure.
    package func run<T>(
        log: Logger, notice: Logger.Message, _ attempt: (_ hasCome: () -> Void) throws -> T
    ) throws -> T {
        var attempts = LossyAttempts(patience: patience)
        while true {
            do {
                return try attempt { attempts.noteProgress() }
            } catch {
                guard case .retry(let delay) = attempts.fail(error, at: now()) else { throw error }
                log.warning(notice, metadata: ["error": "\(error)"])
                pause(delay)
            }
        }
    }
}
