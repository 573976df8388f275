package import MartletSync

/// Decides when an agent has become idle after work that took memory: each start, also that of a reload, and each long
/// catch-up. Pure: it is told the time.
package struct IdleWatch {
    package enum State: Equatable {
        /// The agent works, or has not been idle for long. It was idle at this many looks in a row.
        case working(idleLooks: Int)
        /// The memory of the last work is released.
        case idle
    }

    /// How often to look.
    package static let interval = Duration.seconds(2)
    /// After this many looks in a row at which the agent was idle, its work is over.
    package static let enough = 2

    package private(set) var state = State.working(idleLooks: 0)
    private var catchUp = CatchUp()
    /// When the agent of the last look was made.
    private var startedAt: ContinuousClock.Instant?

    package init() {}

    /// - Parameter progress: that of the present agent.
    /// - Returns: true if the agent has become idle: memory can be released.
    package mutating func look(_ progress: ConsumerProgress, at now: ContinuousClock.Instant) -> Bool {
        if progress.startedAt != startedAt { self = IdleWatch() }
        startedAt = progress.startedAt
        guard catchUp.line(progress, at: now) == nil else {
            state = .working(idleLooks: 0)
            return false
        }
        guard case .working(let looks) = state else { return false }
        let isOver = looks + 1 >= Self.enough
        state = isOver ? .idle : .working(idleLooks: looks + 1)
        return isOver
    }
}
