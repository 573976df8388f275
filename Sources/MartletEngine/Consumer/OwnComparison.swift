package import MartletMerge

/// Whether the topic has what this node has published, and when to republish what it lacks. Pure: ``Consumer`` looks
/// the facts up, and has the publisher republish.
package struct OwnComparison {
    /// How soon to count again after the consumer decided not to republish messages that may still be on their way.
    private static let recountInterval = Duration.seconds(60)

    /// The last sequence that the broker had acknowledged at the assignment: all up to it must be read back before the
    /// end. 0 once that was compared.
    package private(set) var expected: Int64 = 0
    /// Messages that were sent and unanswered at the assignment. The answer may come from a topic that no longer
    /// exists.
    package private(set) var unanswered: UnansweredMessages?
    private var policy: RepublishPolicy
    /// The sequence after which to republish when ``policy`` says so.
    private var missingAfter: Int64 = 0
    private var recountAt: ContinuousClock.Instant?

    package init(_ policy: RepublishPolicy) { self.policy = policy }

    /// The partitions are assigned.
    package mutating func assign(acknowledged: Int64, unanswered: UnansweredMessages?) {
        expected = acknowledged
        self.unanswered = unanswered
    }

    // MARK: At the end of every partition

    /// Every partition was read to its end. Follow with ``noteCompared()``.
    ///
    /// - Parameters:
    ///   - found: the sequence up to which all transactions are on the topic.
    ///   - isCut: whether the topic has dropped messages from its beginning.
    package mutating func judgeEnd(
        found: Int64, isCut: Bool, at now: ContinuousClock.Instant
    ) -> RepublishPolicy.Verdict {
        let verdict = policy.judge(found: found, expected: expected, isCut: isCut, at: now)
        if verdict == .wait { missingAfter = found }
        return verdict
    }

    /// What follows from the verdict was done.
    package mutating func noteCompared() { expected = 0 }

    // MARK: Messages in flight

    /// The messages that were in flight at the assignment were acknowledged and read back.
    package mutating func noteAnswered() { unanswered = nil }

    /// The messages that were in flight at the assignment were acknowledged, and not all of them were read back.
    ///
    /// - Parameters:
    ///   - found: the sequence up to which all transactions were read back.
    ///   - ends: the ends of the partitions after the acknowledgement. Only those are conclusive, and they are kept for
    ///     the next call.
    ///   - isRead: whether the partitions were read up to these ends.
    /// - Returns: the sequence after which to republish: another topic has the messages. Nil if that isn't known yet,
    ///   or must not be done so soon after the last time.
    package mutating func judgeAnswered(
        found: Int64, ends: [Int32: Int64], isRead: Bool, at now: ContinuousClock.Instant
    ) -> Int64? {
        guard isRead else {
            unanswered?.ends = ends
            return nil
        }
        unanswered = nil
        if policy.mayPublish(after: found, at: now) { return found }
        recountAt = now + Self.recountInterval
        return nil
    }

    // MARK: What is due

    /// True while republished transactions are awaited.
    package var isAwaiting: Bool { policy.target != nil }

    /// Everything up to this sequence was read back.
    package mutating func noteConfirmed(_ sequence: Int64) { policy.noteConfirmed(sequence) }

    /// Returns the sequence after which to republish once its back-off has ended, and then nil.
    package mutating func takeDue(at now: ContinuousClock.Instant) -> Int64? {
        policy.isDue(at: now) ? missingAfter : nil
    }

    /// Returns true once, when it is time to count again.
    package mutating func takeRecount(at now: ContinuousClock.Instant) -> Bool {
        guard let recountAt, now >= recountAt else { return false }
        self.recountAt = nil
        return true
    }
}
