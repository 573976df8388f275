import Dispatch
import Synchronization

/// Detects runs that are stuck in one step. May be used from any thread.
package final class StallWatch: Sendable {
    private struct Entry {
        var step: String
        var since: ContinuousClock.Instant
        var isReported = false
    }

    private let limit: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let running = Mutex<[UInt64: Entry]>([:])

    package init(limit: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.limit = limit
        self.now = now
    }

    /// Records that the seed starts a step.
    package func begin(_ seed: UInt64, step: String) {
        running.withLock { $0[seed] = Entry(step: step, since: now()) }
    }

    package func end(_ seed: UInt64) { running.withLock { _ = $0.removeValue(forKey: seed) } }

    /// The seeds that have been in one step for longer than the limit, each returned once.
    package func stalled() -> [(seed: UInt64, step: String)] {
        let now = now()
        return running.withLock { running in
            var found: [(UInt64, String)] = []
            for (seed, entry) in running where !entry.isReported && now - entry.since > limit {
                running[seed]?.isReported = true
                found.append((seed, entry.step))
            }
            return found
        }
    }

    /// Checks every second, until the timer is cancelled.
    func watch(_ report: @escaping @Sendable (UInt64, String) -> Void) -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.schedule(deadline: .now() + 1, repeating: 1)
        timer.setEventHandler { [self] in
            for (seed, step) in stalled() { report(seed, step) }
        }
        timer.resume()
        return timer
    }
}
