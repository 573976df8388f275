import MartletAgent
import MartletSync
import Testing

/// The attempts of a sync session inside a program, without a thread, a store or a broker.
@Suite struct SessionCycleTests {
    private let start = ContinuousClock.Instant.now
    private let locked = StoreError(.locked, "Another agent runs.", hint: "")
    private let lost = BusError(.unreachable, "cut", isRetriable: true)

    private func opening(_ cycle: inout SessionCycle, _ error: any Error) -> SessionCycle.Action {
        if cycle.state == .waitingForTurn || cycle.state == .backingOff { _ = cycle.handle(.waited) }
        return cycle.handle(.failed(error, at: start))
    }

    /// Opens the store, and lets the agent fail after it has run for a while.
    private func running(_ cycle: inout SessionCycle, for time: Duration) -> SessionCycle.Action {
        if cycle.state == .backingOff { _ = cycle.handle(.waited) }
        _ = cycle.handle(.opened(at: start))
        return cycle.handle(.failed(lost, at: start + time))
    }

    @Test func anAgentRunsAsSoonAsItsStoreIsOpen() {
        var cycle = SessionCycle()
        #expect(cycle.handle(.opened(at: start)) == .run)
        #expect(cycle.state == .running(since: start))
        #expect(cycle.handle(.stopped) == .end(nil))
        #expect(cycle.state == .ended)
    }

    @Test func aSessionThatWaitsForItsTurnSaysSoOnceEachTimeItHasToWait() {
        var cycle = SessionCycle()
        #expect(opening(&cycle, locked) == .wait(.seconds(1), .waitsForItsTurn))
        for _ in 0..<3 { #expect(opening(&cycle, locked) == .wait(.seconds(1), nil)) }
        #expect(cycle.handle(.waited) == .open)
        #expect(running(&cycle, for: .seconds(5)) == .wait(.seconds(1), .failed))
        // Another process was faster.
        #expect(opening(&cycle, locked) == .wait(.seconds(1), .waitsForItsTurn))
    }

    @Test func waitsGrowUpToAMinuteUntilAnAgentHasRunForAMinute() {
        var cycle = SessionCycle()
        let waits = (0..<8).map { _ in running(&cycle, for: .seconds(60)) }
        let expected: [SessionCycle.Action] = [1, 2, 4, 8, 16, 32, 60, 60].map { .wait(.seconds($0), .failed) }
        #expect(waits == expected)
        #expect(running(&cycle, for: .seconds(61)) == .wait(.seconds(1), .failed))
    }

    /// Each attempt reads the whole store.
    @Test func timeSpentOnOpeningTheStoreDoesNotShortenTheNextWait() {
        var cycle = SessionCycle()
        #expect(cycle.handle(.failed(lost, at: start + .seconds(300))) == .wait(.seconds(1), .failed))
        #expect(cycle.handle(.waited) == .open)
        #expect(cycle.handle(.failed(lost, at: start + .seconds(900))) == .wait(.seconds(2), .failed))
        #expect(cycle.handle(.waited) == .open)
        #expect(cycle.handle(.opened(at: start + .seconds(1500))) == .run)
        #expect(cycle.handle(.failed(lost, at: start + .seconds(1501))) == .wait(.seconds(4), .failed))
    }

    @Test func aCopiedStoreIsTriedAgainEveryMinute() {
        let copied = StoreError(.copied, "A copy.", hint: "")
        var cycle = SessionCycle()
        for _ in 0..<3 { #expect(opening(&cycle, copied) == .wait(.seconds(60), .copied)) }
        #expect(cycle.handle(.waited) == .open)
        #expect(cycle.handle(.opened(at: start)) == .run)
        #expect(cycle.handle(.failed(copied, at: start)) == .wait(.seconds(60), .copied))
    }

    @Test(arguments: [StoreError.Code.corrupt, .newerVersion, .invalidArgument])
    func anErrorThatOnlyAPersonCanRemoveEndsTheSessionUnlessTheAgentRan(code: StoreError.Code) {
        let error = StoreError(code, "No.", hint: "")
        var cycle = SessionCycle()
        #expect(opening(&cycle, error) == .end(.ended))
        #expect(cycle.state == .ended)
        cycle = SessionCycle()
        #expect(cycle.handle(.opened(at: start)) == .run)
        #expect(cycle.handle(.failed(error, at: start)) == .wait(.seconds(1), .failed))
    }

    @Test func anInvalidConfigurationEndsTheSession() {
        let errors: [any Error] = [ConfigurationError(problems: ["store.path"]), BusError(.configuration, "no")]
        for error in errors {
            var cycle = SessionCycle()
            #expect(opening(&cycle, error) == .end(.ended))
        }
    }

    @Test func aSessionEndsFromEveryStateOnceItIsStopped() {
        var waiting = SessionCycle()
        _ = waiting.handle(.failed(locked, at: start))
        var failed = SessionCycle()
        _ = failed.handle(.failed(lost, at: start))
        for var cycle in [SessionCycle(), waiting, failed] { #expect(cycle.handle(.stopped) == .end(nil)) }
    }

    @Test func anAgentThatEndsByItselfIsStartedAgain() {
        var cycle = SessionCycle()
        _ = cycle.handle(.opened(at: start))
        #expect(cycle.handle(.finished) == .open)
        #expect(cycle.state == .opening(isInLine: false))
    }
}
