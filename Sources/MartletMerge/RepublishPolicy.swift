/// Decides when a node republishes the local transactions that the topic lacks, and when it gives up. A pure state
/// machine.
///
/// Republishing repairs a topic that was wiped. But a topic that retains less than the missing amount drops its oldest
/// messages while the new ones arrive: it lacks as much as before, however often the node republishes, and it also
/// loses what other nodes have just written. So there is a back-off. If the topic begins after its first message, as it
/// does after retention, there is also a limit on attempts.
package struct RepublishPolicy {
    package enum Verdict: Equatable {
        case nothingMissing
        case publish
        /// Republish once ``isDue(at:)`` returns true.
        case wait
        /// Stop: the topic does not retain the transactions.
        case giveUp
    }

    /// The pause before each attempt. If the policy doesn't give up, the last pause also applies to all further
    /// attempts.
    package static let defaultPauses: [Duration] = [.zero, .seconds(10), .seconds(60)]
    /// A loss this long after the last attempt counts as a new one.
    private static let memory = Duration.seconds(600)

    private let pauses: [Duration]
    private var attempts = 0
    private var lastAttempt: ContinuousClock.Instant?
    private var due: ContinuousClock.Instant?
    /// When transactions were last republished on suspicion.
    private var suspected: ContinuousClock.Instant?
    /// The sequence that is read back from the topic if the last attempt succeeded. Nil if none is awaited.
    package private(set) var target: Int64?

    package init(pauses: [Duration] = RepublishPolicy.defaultPauses) { self.pauses = pauses }

    /// - Parameters:
    ///   - found: the last sequence of the contiguous prefix that is on the topic.
    ///   - expected: the last sequence that should be on the topic.
    ///   - isCut: whether the topic has dropped messages from its beginning.
    package mutating func judge(
        found: Int64, expected: Int64, isCut: Bool, at now: ContinuousClock.Instant
    ) -> Verdict {
        forgetOld(at: now)
        guard found < expected else {
            forget()
            return .nothingMissing
        }
        if due != nil { return .wait }
        if isCut, attempts >= pauses.count {
            forget()
            return .giveUp
        }
        let pause = pauses[min(attempts, pauses.count - 1)]
        target = expected
        guard pause > .zero else {
            note(at: now)
            return .publish
        }
        due = now + pause
        return .wait
    }

    /// Notes that everything up to this sequence was read back.
    package mutating func noteConfirmed(_ sequence: Int64) {
        if due == nil, let target, sequence >= target { forget() }
    }

    /// Returns true once, when it is time to publish after ``judge(found:expected:isCut:at:)`` returned `wait`.
    package mutating func isDue(at now: ContinuousClock.Instant) -> Bool {
        guard let due, now >= due else { return false }
        note(at: now)
        return true
    }

    /// Returns whether the transactions after this sequence may be republished on suspicion. Returns false for a while
    /// after any republishing.
    package mutating func mayPublish(after sequence: Int64, at now: ContinuousClock.Instant) -> Bool {
        forgetOld(at: now)
        guard attempts == 0, due == nil, suspected.map({ now - $0 > Self.memory }) ?? true else { return false }
        target = sequence + 1
        suspected = now
        return true
    }

    private mutating func forget() {
        (attempts, due, target, suspected) = (0, nil, nil, nil)
    }

    private mutating func note(at now: ContinuousClock.Instant) {
        attempts += 1
        lastAttempt = now
        due = nil
    }

    private mutating func forgetOld(at now: ContinuousClock.Instant) {
        if due == nil, let lastAttempt, now - lastAttempt > Self.memory { forget() }
    }
}
