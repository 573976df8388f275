import Logging
import MartletAgent
import MartletSync
import MartletTestSupport
import Testing

@Suite struct LossyWorkTests {
    /// Work whose attempts end as the steps say, one after the other.
    private final class Script {
        enum Step {
            case ends(coming: Int, after: Duration = .zero, any Error)
            case isDone
        }

        private var steps: [Step]
        private(set) var pauses = 0
        private(set) var now = ContinuousClock.now

        init(_ steps: [Step]) { self.steps = steps }

        /// - Parameter pause: the length of a pause on the clock of this script.
        func run(pause: Duration = .seconds(1)) throws -> Int {
            var work = LossyWork()
            work.now = { self.now }
            work.pause = { _ in
                self.pauses += 1
                self.now += pause
            }
            return try work.run(log: quietLog, notice: "It goes on") { hasCome in
                guard case .ends(let count, let duration, let error) = steps.removeFirst() else { return pauses }
                for _ in 0..<count { hasCome() }
                now += duration
                throw error
            }
        }
    }

    private static let lost = BusError(.unreachable, "cut", isRetriable: true)

    @Test func workContinuesAfterEachLostConnection() throws {
        let script = Script([
            .ends(coming: 3, Self.lost), .ends(coming: 1, Self.lost), .ends(coming: 0, Self.lost), .isDone,
        ])
        #expect(try script.run() == 3)
    }

    @Test func workThatReceivesNothingFailsAtOnce() {
        let script = Script([.ends(coming: 0, Self.lost), .isDone])
        #expect(throws: Self.lost) { try script.run() }
        #expect(script.pauses == 0)
    }

    @Test func workGivesUpAfterAMinuteWithoutProgress() {
        let script = Script([.ends(coming: 1, Self.lost)] + Array(repeating: .ends(coming: 0, Self.lost), count: 99))
        #expect(throws: Self.lost) { try script.run(pause: .seconds(10)) }
        #expect(script.pauses == 6)
    }

    @Test func progressRestartsTheWait() throws {
        let script = Script(Array(repeating: .ends(coming: 1, Self.lost), count: 20) + [.isDone])
        #expect(try script.run(pause: .seconds(50)) == 20)
    }

    @Test func aSlowAttemptDoesNotCountAsAWait() throws {
        let script = Script([.ends(coming: 1, after: .seconds(300), Self.lost), .isDone])
        #expect(try script.run() == 1)
    }

    @Test func aPermanentErrorEndsTheWork() {
        let refused = BusError(.unauthorized, "no")
        let script = Script([.ends(coming: 1, refused), .isDone])
        #expect(throws: refused) { try script.run() }
    }
}
