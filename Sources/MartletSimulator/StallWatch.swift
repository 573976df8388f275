import Dispatch
import Foundation
import Synchronization

/// Detects runs that are stuck in one step. May be used from any thread.
///
/// A step that computes without end is found by the processor time of its thread, so a step that merely gets little of
/// a busy machine is not reported. One that waits without end uses no processor time, and is found by the elapsed time.
package final class StallWatch: Sendable {
    /// How many times as long as the limit a step may take while its thread gets little processor time.
    package static let patience = 10

    private struct Entry {
        var step: String
        var since: ContinuousClock.Instant
        var processor: @Sendable () -> Duration
        var before: Duration
        var isReported = false
    }

    private let limit: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let processor: @Sendable () -> @Sendable () -> Duration
    private let running = Mutex<[UInt64: Entry]>([:])

    /// - Parameter processor: returns a clock of the processor time that the calling thread uses.
    package init(
        limit: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        processor: @escaping @Sendable () -> @Sendable () -> Duration = StallWatch.processorClock
    ) {
        self.limit = limit
        self.now = now
        self.processor = processor
    }

    /// Records that the seed starts a step on this thread.
    package func begin(_ seed: UInt64, step: String) {
        let processor = processor()
        let entry = Entry(step: step, since: now(), processor: processor, before: processor())
        running.withLock { $0[seed] = entry }
    }

    package func end(_ seed: UInt64) { running.withLock { _ = $0.removeValue(forKey: seed) } }

    /// Returns a clock that any thread may read, of the processor time that this thread uses.
    package static func processorClock() -> @Sendable () -> Duration {
        var clock = clockid_t()
        guard pthread_getcpuclockid(pthread_self(), &clock) == 0 else { return { .zero } }
        return { [clock] in
            var time = timespec()
            // The clock of a thread that has ended can't be read.
            guard clock_gettime(clock, &time) == 0 else { return .zero }
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
    }

    private func isStalled(_ entry: Entry, _ now: ContinuousClock.Instant) -> Bool {
        entry.processor() - entry.before > limit || now - entry.since > limit * Self.patience
    }

    /// The seeds that have been in one step for too long, each returned once.
    package func stalled() -> [(seed: UInt64, step: String)] {
        let now = now()
        return running.withLock { running in
            var found: [(UInt64, String)] = []
            for (seed, entry) in running where !entry.isReported && isStalled(entry, now) {
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
