import Foundation

/// When the agent keeps its hands off the write lock, so that others get it.
///
/// SQLite has no queue of writers: who finds the lock taken looks again a while later, with Python's and most others'
/// settings after 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50 and then each 100 ms. An agent that takes the lock again as
/// soon as it has let go of it is hardly ever found without it. So it rests once it has held the lock for 30 ms, and
/// longer the longer it has: 25 ms, after more than 50 ms 50, and after more than 100 ms 100. Whoever begins to look
/// then finds the lock free within some 130 ms while no commit holds it for more than 50, and within some 230 ms while
/// none holds it for more than 75: what is longer than the pause between two looks is found by one.
///
/// Pure, but for ``wait(now:)``. What holds the lock now and then never rests: time in which nobody holds it counts.
package struct WriterTurns {
    private static let stretch = Duration.milliseconds(30)
    private static let shortRest = Duration.milliseconds(25)

    private var rest: Duration {
        switch held {
        case ...Duration.milliseconds(50): Self.shortRest
        case ...Duration.milliseconds(100): .milliseconds(50)
        default: .milliseconds(100)
        }
    }

    /// For how long the lock was held, less what others had of the time since.
    private var held = Duration.zero
    private var began: ContinuousClock.Instant?
    private var ended: ContinuousClock.Instant?

    package init() {}

    /// How long to wait before the lock is taken.
    package mutating func pause(at now: ContinuousClock.Instant) -> Duration {
        guard let ended else { return .zero }
        let free = now - ended
        if free >= rest { held = .zero }
        return held < Self.stretch ? .zero : rest - max(.zero, free)
    }

    /// Waits for that long.
    mutating func wait(now: () -> ContinuousClock.Instant) {
        let pause = pause(at: now())
        guard pause > .zero else { return }
        Thread.sleep(forTimeInterval: pause / .seconds(1))
        held = .zero
    }

    /// The lock is taken.
    package mutating func begin(at now: ContinuousClock.Instant) {
        // Short times without the lock count in proportion.
        if let ended { held = max(.zero, held - (now - ended) * (Self.stretch / Self.shortRest)) }
        began = now
    }

    /// The lock is free.
    package mutating func end(at now: ContinuousClock.Instant) {
        guard let began else { return }
        held += max(.zero, now - began)
        self.began = nil
        ended = now
    }
}
