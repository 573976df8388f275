import MartletAgent
import MartletSync
import Testing

/// The attempts of long work over a bad link, without the work.
@Suite struct LossyAttemptsTests {
    private let start = ContinuousClock.Instant.now
    private let lost = BusError(.unreachable, "cut", isRetriable: true)

    private func progressing() -> LossyAttempts {
        var attempts = LossyAttempts(patience: .seconds(60))
        attempts.noteProgress()
        return attempts
    }

    @Test func aFirstAttemptWithoutProgressIsTheLast() {
        var attempts = LossyAttempts(patience: .seconds(60))
        #expect(attempts.fail(lost, at: start) == .giveUp)
        #expect(attempts.state == .untried)
    }

    @Test func onlyAnErrorThatMayPassIsRetried() {
        var attempts = progressing()
        #expect(attempts.fail(BusError(.unauthorized, "no"), at: start) == .giveUp)
        #expect(attempts.fail(StoreError(.busy, "locked"), at: start) == .giveUp)
        #expect(attempts.fail(lost, at: start) == .retry(after: .seconds(1)))
    }

    @Test func thePatienceCountsFromTheFirstFailureSinceThereWasProgress() {
        var attempts = progressing()
        #expect(attempts.fail(lost, at: start) == .retry(after: .seconds(1)))
        #expect(attempts.fail(lost, at: start + .seconds(59)) == .retry(after: .seconds(2)))
        #expect(attempts.state == .lost(since: start))
        #expect(attempts.fail(lost, at: start + .seconds(60)) == .giveUp)
    }

    @Test func progressStartsTheWaitsAnew() {
        var attempts = progressing()
        let delays = (0..<4).map { _ in attempts.fail(lost, at: start) }
        let expected: [LossyAttempts.Action] = [1, 2, 4, 5].map { .retry(after: .seconds($0)) }
        #expect(delays == expected)
        attempts.noteProgress()
        #expect(attempts.state == .progressing)
        #expect(attempts.fail(lost, at: start + .seconds(600)) == .retry(after: .seconds(1)))
    }
}
