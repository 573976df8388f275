import MartletCore
import MartletReplica

/// How far a run has read a partition, and whether a record holds it up. A pure value.
struct PartitionReading {
    /// The offset of the next record.
    var next: Int64
    /// True once everything that the partition had was read.
    var isAtEnd = false
    private(set) var hold: Hold?

    /// A record that can't be merged now.
    struct Hold {
        fileprivate(set) var reason: String
        fileprivate(set) var retriedAt: ContinuousClock.Instant
        fileprivate var backoff = Backoff(from: .seconds(1), to: .seconds(60))
    }

    init(next: Int64) { self.next = next }

    /// Takes over what has become of records.
    ///
    /// - Returns: true if the partition is held up for another reason than before, or at another record.
    mutating func take(_ place: SourcePlace, at now: ContinuousClock.Instant) -> Bool {
        let hasMoved = place.next != next
        next = place.next
        guard let problem = place.problem else {
            hold = nil
            return false
        }
        isAtEnd = false
        var hold = hasMoved ? nil : self.hold
        let isNew = hold?.reason != problem.reason
        if hold == nil { hold = Hold(reason: problem.reason, retriedAt: now) }
        hold?.reason = problem.reason
        if let delay = hold?.backoff.fail() { hold?.retriedAt = now + delay }
        self.hold = hold
        return isNew
    }

    /// Whether the partition may be read now.
    func isReadable(at now: ContinuousClock.Instant) -> Bool { hold.map { $0.retriedAt <= now } ?? true }
}
