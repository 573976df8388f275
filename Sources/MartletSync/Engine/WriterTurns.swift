import Foundation

/// When the agent keeps its hands off the write lock, so that others get it.
///
/// SQLite has no queue of writers: who finds the lock taken looks again a while later, with Python's and most others' settings after 1,
/// 2, 5, 10, 15, 20, 25, 25, 25, 50, 50 and then each 100 ms. An agent that takes the lock again as soon as it has let go of it is hardly ever
/// found without it. So it rests, in proportion to how long it has held the lock: 25 ms after 60. Whoever begins to look then finds the
/// lock free within some 130 ms, for as long as no commit holds it for much more than 60.
///
/// Pure, but for ``wait(now:)``. What holds the lock now and then never rests: time in which nobody holds it counts.
package struct WriterTurns {
    private static let rest = Duration.milliseconds(25)
    private static let stretch = Duration.milliseconds(60)

    /// For how long the lock was held, less what others had of the time since.
    private var held = Duration.zero
    private var began: ContinuousClock.Instant?
    private var ended: ContinuousClock.Instant?

    package init() {}

    /// How long to wait before the lock is taken.
    package mutating func pause(at now: ContinuousClock.Instant) -> Duration {
        guard let ended else { return .zero }
        let free = now - ended
        if free >= Self.rest { held = .zero }
        return held < Self.stretch ? .zero : Self.rest - max(.zero, free)
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
        if let ended { held = max(.zero, held - (now - ended) * (Self.stretch / Self.rest)) }
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
