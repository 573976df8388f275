/// When a node publishes again what the topic lacks of its own, and when it stops. Pure.
///
/// A topic that was wiped has it afterwards. One that keeps less than that pushes out one end while the other comes in:
/// it lacks as much as before, however often that is sent, and with it goes what others have just written. So there is
/// a back-off, and where the topic begins after its first message, as it does by retention, an end.
package struct RepublishPolicy {
    package enum Verdict: Equatable {
        case nothingMissing
        case publish
        /// It is published when ``isDue(at:)`` says so.
        case wait
        /// The topic does not keep it.
        case giveUp
    }

    /// How long to wait before each attempt. Where none is given up, the last one counts for all that follow.
    package static let defaultPauses: [Duration] = [.zero, .seconds(10), .seconds(60)]
    /// What was lost so long after the last attempt was lost anew.
    private static let memory = Duration.seconds(600)

    private let pauses: [Duration]
    private var attempts = 0
    private var lastAttempt: ContinuousClock.Instant?
    private var due: ContinuousClock.Instant?
    /// When something was last published again on suspicion.
    private var suspected: ContinuousClock.Instant?
    /// The sequence that is read back where the last attempt was enough. Nil while there is none to look for.
    package private(set) var target: Int64?

    package init(pauses: [Duration] = RepublishPolicy.defaultPauses) { self.pauses = pauses }

    /// - Parameters:
    ///   - found: the sequence up to which all is on the topic.
    ///   - expected: up to which all should be.
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

    /// All up to this sequence was read back.
    package mutating func noteConfirmed(_ sequence: Int64) {
        if due == nil, let target, sequence >= target { forget() }
    }

    /// True once where the time has come to publish what ``judge(found:expected:isCut:at:)`` had wait.
    package mutating func isDue(at now: ContinuousClock.Instant) -> Bool {
        guard let due, now >= due else { return false }
        note(at: now)
        return true
    }

    /// Whether what follows this sequence may be published again on suspicion: not soon after anything was.
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
