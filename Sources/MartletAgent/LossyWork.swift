import Foundation
package import Logging
import MartletSync

/// Long work over a connection that is lost now and then: it goes on where it stopped, on a new connection.
///
/// Blocks the calling thread.
package struct LossyWork {
    /// How long to try again while nothing comes.
    package var patience = Duration.seconds(60)
    /// Between two connections.
    package var interval = Duration.seconds(1)
    package var now: () -> ContinuousClock.Instant = { .now }
    package var pause: (Duration) -> Void = { Thread.sleep(forTimeInterval: $0 / .seconds(1)) }

    package init() {}

    /// Runs `attempt`, and again where the bus is the reason that it ended, and it had come further by then.
    ///
    /// - Parameters:
    ///   - notice: what the log says before each further attempt.
    ///   - attempt: goes on where the one before stopped. Calls its argument whenever it has come further.
    /// - Throws: what `attempt` threw: at once where nothing had come at all, so that a wrong address is told at once,
    ///   and for all but a ``/MartletBus/BusError`` that may pass; else where nothing has come for ``patience`` since
    ///   it was lost.
    package func run<T>(
        log: Logger, notice: Logger.Message, _ attempt: (_ hasCome: () -> Void) throws -> T
    ) throws -> T {
        var hasBegun = false
        // When it was first lost since something came.
        var lostAt: ContinuousClock.Instant?
        while true {
            do {
                return try attempt {
                    hasBegun = true
                    lostAt = nil
                }
            } catch let error as BusError {
                let since = lostAt ?? now()
                lostAt = since
                guard error.isRetriable, hasBegun, now() - since < patience else { throw error }
                log.warning(notice, metadata: ["error": "\(error)"])
            }
            pause(interval)
        }
    }
}
