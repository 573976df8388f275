import Foundation

/// Decides when the agent leaves the write lock alone, so that others get it.
///
/// SQLite has no queue of writers: a writer that finds the lock taken looks again a while later, with Python's and most
/// other settings after 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50 and then every 100 ms. An agent that takes the lock
/// again as soon as it has released it is hardly ever found without it. So it rests once it has held the lock for 30
/// ms, and rests longer the longer it has held it: 25 ms, after more than 50 ms 50, and after more than 100 ms 100. A
/// writer that begins to look then finds the lock free within some 130 ms while no commit holds it for more than 50,
/// and within some 230 ms while none holds it for more than 75, since one of its looks falls into any pause that is
/// longer than the time between two looks.
///
/// Pure, except for ``wait(now:unless:rest:)``. An agent that takes the lock only now and then never rests: time in
/// which nobody holds it counts.
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

    /// How long the lock was held, less the time that others have had since.
    private var held = Duration.zero
    private var began: ContinuousClock.Instant?
    private var ended: ContinuousClock.Instant?

    package init() {}

    /// Returns how long to wait before taking the lock.
    package mutating func pause(at now: ContinuousClock.Instant) -> Duration {
        guard let ended else { return .zero }
        let free = now - ended
        if free >= rest { held = .zero }
        return held < Self.stretch ? .zero : rest - max(.zero, free)
    }

    /// Waits for that long, unless nobody else can want the lock.
    ///
    /// - Parameter isAlone: asked once in a stretch only. Whoever opens the file after that finds what it would have
    ///   found after a rest.
    package mutating func wait(
        now: () -> ContinuousClock.Instant, unless isAlone: () -> Bool,
        rest: (Duration) -> Void = { Thread.sleep(forTimeInterval: $0 / .seconds(1)) }
    ) {
        let pause = pause(at: now())
        guard pause > .zero else { return }
        if !isAlone() { rest(pause) }
        held = .zero
    }

    /// Records that the lock was taken.
    package mutating func begin(at now: ContinuousClock.Instant) {
        // Short times without the lock count in proportion.
        if let ended { held = max(.zero, held - (now - ended) * (Self.stretch / Self.shortRest)) }
        began = now
    }

    /// Records that the lock was released.
    package mutating func end(at now: ContinuousClock.Instant) {
        guard let began else { return }
        held += max(.zero, now - began)
        self.began = nil
        ended = now
    }
}
