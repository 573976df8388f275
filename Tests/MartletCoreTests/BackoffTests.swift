import MartletCore
import Testing

@Suite struct BackoffTests {
    @Test func theWaitDoublesUpToTheLimit() {
        var backoff = Backoff(from: .milliseconds(50), to: .milliseconds(300))
        #expect(backoff.delay == .zero)
        for milliseconds in [50, 100, 200, 300, 300] {
            let wait = backoff.fail()
            #expect(wait == .milliseconds(milliseconds))
            #expect(backoff.delay == wait)
        }
    }

    @Test func aSuccessMakesTheNextWaitShortAgain() {
        var backoff = Backoff(from: .seconds(1), to: .seconds(60))
        for _ in 0..<10 { backoff.fail() }
        backoff.reset()
        #expect(backoff.delay == .zero)
        let wait = backoff.fail()
        #expect(wait == .seconds(1))
    }

    @Test func theFirstWaitIsNeverLongerThanTheLimit() {
        var backoff = Backoff(from: .seconds(10), to: .seconds(1))
        let wait = backoff.fail()
        #expect(wait == .seconds(1))
    }
}
