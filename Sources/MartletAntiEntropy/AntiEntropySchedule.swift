/// When a node begins checks, sends reports, and requests snapshots. Pure: it is told the time, and does nothing
/// itself.
package struct AntiEntropySchedule {
    /// How soon after its start a node may begin a check.
    package static let firstCheck = Duration.seconds(600)
    /// How soon after its start a node sends its report.
    package static let firstReport = Duration.seconds(30)
    /// How soon a node that waits for a snapshot notices that, and how soon it repeats its request.
    package static let requestDelay = (first: Duration.seconds(5), next: Duration.seconds(600))
    /// How soon a check is continued that had more to say than fits into its messages.
    package static let continuation = Duration.seconds(5)

    /// Zero: nothing is ever due.
    private let interval: Duration
    /// When this node last agreed with another one, or began a check.
    private var settledAt: ContinuousClock.Instant
    /// True if a check had more to say than fits into its messages.
    private var isCut = false
    private var reportedAt: ContinuousClock.Instant
    /// When to look next whether this node waits for a snapshot.
    private var requestAt: ContinuousClock.Instant

    /// The intervals count from before the start, so that nodes that restart every day check as well.
    package init(interval: Duration, at now: ContinuousClock.Instant) {
        self.interval = interval
        settledAt = now - max(.zero, interval - Self.firstCheck)
        reportedAt = now - max(.zero, interval - Self.firstReport)
        requestAt = now
    }

    // MARK: What is due

    /// - Parameter fraction: of this node, from 0 to 1: nodes begin at different times, so that most find that another
    ///   one has begun.
    package func isCheckDue(at now: ContinuousClock.Instant, fraction: Double) -> Bool {
        guard interval > .zero else { return false }
        return now - settledAt > (isCut ? Self.continuation : interval * (1 + fraction / 4))
    }

    /// - Parameter isUrgent: true if the author of a refused transaction should hear of it soon.
    package func isReportDue(at now: ContinuousClock.Instant, isUrgent: Bool) -> Bool {
        interval > .zero && (isUrgent || now - reportedAt >= interval)
    }

    package func isRequestDue(at now: ContinuousClock.Instant) -> Bool { now >= requestAt }

    // MARK: Events

    /// This node tries to begin a check. If it can't, it does not try again at once, since there may be more to send
    /// first.
    package mutating func noteTried(at now: ContinuousClock.Instant) { settledAt = now }

    /// The check has begun: what it is about was sent.
    package mutating func noteBegun() { isCut = false }

    /// Another node has the same rows.
    package mutating func noteAgreed(at now: ContinuousClock.Instant) { settledAt = now }

    /// An answer had more to say than fits into its message.
    package mutating func noteCut() { isCut = true }

    package mutating func noteReported(at now: ContinuousClock.Instant) { reportedAt = now }

    /// This node has looked whether it waits for a snapshot, or has requested one.
    package mutating func noteLooked(at now: ContinuousClock.Instant, isRequested: Bool) {
        requestAt = now + (isRequested ? Self.requestDelay.next : Self.requestDelay.first)
    }
}
