/// The true time, in milliseconds since 1970. Safe because a simulation runs on one thread.
package final class TrueTime: @unchecked Sendable {
    var milliseconds: Int64 = 1_800_000_000_000
    private var intervals = 0

    package init() {}

    /// For intervals: later at each call, so that no work is postponed.
    func instant() -> ContinuousClock.Instant {
        intervals += 1
        return Self.start + .milliseconds(milliseconds - 1_800_000_000_000 + Int64(intervals))
    }

    // Any instant will do: only differences matter.
    private static let start = ContinuousClock.now
}

/// The clock of one node, which may be wrong. Safe because a simulation runs on one thread.
final class NodeClock: @unchecked Sendable {
    private let time: TrueTime
    private var base: Int64
    private var since: Int64
    private var percent: Int64 = 100

    init(_ time: TrueTime) {
        self.time = time
        base = time.milliseconds
        since = time.milliseconds
    }

    var milliseconds: Int64 { base + (time.milliseconds - since) * percent / 100 }

    /// Sets the time of the clock, and how fast it runs.
    func set(_ milliseconds: Int64, percent: Int64 = 100) {
        base = milliseconds
        since = time.milliseconds
        self.percent = percent
    }

    func correct() { set(time.milliseconds) }
}
