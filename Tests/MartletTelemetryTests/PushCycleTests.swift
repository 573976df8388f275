import MartletTelemetry
import Testing

@Suite struct PushCycleTests {
    private let start = ContinuousClock.now
    private let interval = Duration.seconds(60)

    private func cycle() -> PushCycle {
        var cycle = PushCycle(now: start)
        cycle.noteCollected(at: start, interval: interval)
        return cycle
    }

    private let success = PushOutcome.delivered(rejected: 0, message: "")

    @Test func pushesComeAtEqualIntervals() {
        var cycle = cycle()
        #expect(cycle.note(success, at: start + .seconds(2)) == .init(.collect(after: .seconds(58))))
        cycle.noteCollected(at: start + .seconds(61), interval: interval)
        #expect(cycle.note(success, at: start + .seconds(61)) == .init(.collect(after: .seconds(59))))
        // The machine slept.
        cycle.noteCollected(at: start + .seconds(1000), interval: interval)
        #expect(cycle.note(success, at: start + .seconds(1000)) == .init(.collect(after: .seconds(60))))
    }

    @Test func aFailedRequestIsRepeatedWithBackOffUntilTheNextOneIsDue() {
        var cycle = cycle()
        var now = start
        var delays: [Duration] = []
        var events: [PushCycle.Event] = []
        while true {
            let step = cycle.note(.failed("no", retryAfter: nil), at: now)
            events += step.events
            guard case .resend(let delay) = step.action else {
                #expect(step.action == .collect(after: start + interval - now))
                break
            }
            delays.append(delay)
            now += delay
        }
        #expect(delays == [1, 2, 4, 8, 16].map { Duration.seconds($0) })
        #expect(events.first == .failing("no"))
        #expect(events.dropFirst().allSatisfy { $0 == .stillFailing("no") } && events.count == 6)
        #expect(cycle.note(success, at: now).events == [.recovered])
        #expect(cycle.note(success, at: now).events.isEmpty)
    }

    @Test func theCollectorDecidesWhenItIsAskedAgain() {
        var cycle = cycle()
        let soon = cycle.note(.failed("busy", retryAfter: .seconds(20)), at: start)
        #expect(soon.action == .resend(after: .seconds(20)))
        let late = cycle.note(.failed("busy", retryAfter: .seconds(300)), at: start + .seconds(20))
        #expect(late.action == .collect(after: .seconds(300)))
    }

    @Test func aRefusedRequestIsNotRepeated() {
        var cycle = cycle()
        let first = cycle.note(.refused("403"), at: start)
        #expect(first == .init(.collect(after: interval), [.refused("403")]))
        #expect(cycle.note(.refused("403"), at: start).events == [.stillFailing("403")])
        #expect(cycle.note(success, at: start).events == [.recovered])
    }

    @Test func rejectedPointsAndRemarksAreReportedOnce() {
        var cycle = cycle()
        let partial = PushOutcome.delivered(rejected: 2, message: "too old")
        #expect(cycle.note(partial, at: start).events == [.rejecting(2, "too old")])
        #expect(cycle.note(partial, at: start).events.isEmpty)
        #expect(cycle.note(success, at: start).events.isEmpty)
        #expect(cycle.note(partial, at: start).events == [.rejecting(2, "too old")])
        let remark = PushOutcome.delivered(rejected: 0, message: "use the new address")
        #expect(cycle.note(remark, at: start).events == [.advised("use the new address")])
        #expect(cycle.note(remark, at: start).events.isEmpty)
    }

    @Test(arguments: [429, 502, 503, 504])
    func theseStatusesAreWorthAnotherRequest(status: Int) {
        let outcome = PushOutcome(status: status, body: #"{"code": 14, "message": "later"}"#, retryAfter: 7)
        #expect(outcome == .failed("the collector answers \(status): later", retryAfter: .seconds(7)))
        let silent = PushOutcome(status: status, body: "", retryAfter: 0)
        #expect(silent == .failed("the collector answers \(status)", retryAfter: nil))
        let absurd = PushOutcome(status: status, body: "", retryAfter: .max)
        #expect(absurd == .failed("the collector answers \(status)", retryAfter: .seconds(3600)))
    }

    @Test(arguments: [(301, "telemetry.otlp.endpoint"), (401, "headersFile"), (404, "metricsEndpoint"), (415, "JSON")])
    func aRefusalSaysWhatToDo(status: Int, advice: String) {
        guard case .refused(let text) = PushOutcome(status: status, body: "no\n", retryAfter: 0) else {
            Issue.record("\(status) is a refusal")
            return
        }
        #expect(text.hasPrefix("the collector answers \(status): no. ") && text.contains(advice))
    }

    @Test func partialSuccessIsRead() {
        let body = #"{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "why"}}"#
        #expect(PushOutcome(status: 200, body: body, retryAfter: 0) == .delivered(rejected: 3, message: "why"))
        for other in ["", "{}", #"{"partialSuccess":{}}"#, "<html>"] {
            #expect(PushOutcome(status: 200, body: other, retryAfter: 0) == success)
        }
    }
}
