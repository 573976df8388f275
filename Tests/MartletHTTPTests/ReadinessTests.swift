import Foundation
import MartletAgent
import MartletHTTP
import MartletSync
import Testing

@Suite struct ReadinessTests {
    private static let now = ContinuousClock.now
    private static let wall: Int64 = 1_800_000_000_000

    /// The facts of a node that has just read both partitions to their ends.
    private func facts(_ change: (inout AgentFacts) -> Void = { _ in }) -> AgentFacts {
        let now = Self.now
        var consumer = ConsumerProgress(startedAt: now - .seconds(1000))
        consumer.positions = [0: 10, 1: 20]
        consumer.ends = [0: 10, 1: 20]
        consumer.appended = [0: Self.wall - 3_600_000, 1: Self.wall - 1000]
        consumer.caughtUpAt = [0: now - .seconds(3600), 1: now - .seconds(1)]
        consumer.steppedAt = now - .milliseconds(200)
        var facts = AgentFacts(
            now: now, milliseconds: Self.wall, consumer: consumer,
            publisher: PublisherProgress(acknowledged: 5, advancedAt: now - .seconds(900)))
        change(&facts)
        return facts
    }

    private func codes(
        _ limit: HTTPConfiguration.ReadyLag = .time(.seconds(30)), _ change: (inout AgentFacts) -> Void
    ) -> [Readiness.Reason.Code] {
        Readiness(facts(change), limit: limit).reasons.map(\.code)
    }

    @Test func aNodeThatCaughtUpStaysReadyWhileIdle() {
        #expect(Readiness(facts(), limit: .time(.seconds(30))).isReady)
        #expect(Readiness(facts(), limit: .messages(0)).isReady)
    }

    @Test func aNodeThatHasNotReadYetIsStarting() {
        #expect(codes { $0.consumer = ConsumerProgress(startedAt: Self.now) } == [.starting])
        // The reason for not having read yet takes precedence.
        #expect(
            codes {
                $0.consumer = ConsumerProgress(startedAt: Self.now)
                $0.consumer.problem = "no broker"
            } == [.reading])
    }

    @Test func problemsOfReadingAndPublishingAreReasons() {
        #expect(codes { $0.consumer.problem = "the broker is gone" } == [.reading])
        #expect(codes { $0.publisher.problem = "the topic is gone" } == [.publishing])
        let readiness = Readiness(facts { $0.consumer.problem = "the broker is gone" }, limit: .time(.seconds(30)))
        #expect(readiness.reasons.first?.message == "Reading fails: the broker is gone")
    }

    @Test func p07AConnectedNodeWithoutProgressIsNotReady() {
        #expect(codes { $0.consumer.steppedAt = Self.now - .seconds(31) } == [.stuck])
        #expect(codes { $0.publisher.inFlightBytes = 1 } == [.stuck])
        #expect(
            codes {
                $0.publisher.inFlightBytes = 1
                $0.publisher.advancedAt = Self.now - .seconds(29)
            }.isEmpty)
    }

    @Test func aNodeThatLoadsASnapshotIsNotReady() {
        var progress = SnapshotProgress(
            id: UUID(), makerName: "a", messages: 3, messageCount: 10, rows: 30, tombstones: 0, isFinished: false)
        #expect(codes { $0.consumer.snapshot = progress } == [.snapshot])
        progress.isFinished = true
        #expect(codes { $0.consumer.snapshot = progress }.isEmpty)
    }

    @Test func aNodeWithHalfASnapshotIsNotReady() {
        #expect(codes { $0.consumer.hasUnfinishedSnapshot = true } == [.snapshot])
    }

    /// It may be new, and lack nearly all rows.
    @Test func aNodeThatWaitsForASnapshotIsNotReadyForFiveMinutes() {
        func readiness(left: Duration, wall: Int64 = Self.wall) -> Readiness {
            let facts = self.facts {
                $0.milliseconds = wall
                $0.consumer.awaitsSnapshotUntil = Self.now + left
            }
            return Readiness(facts, limit: .time(.seconds(30)))
        }
        let early = readiness(left: .seconds(1))
        #expect(early.reasons.map(\.code) == [.snapshot] && early.warnings.isEmpty)
        // Nodes that make no snapshots would never be ready otherwise.
        let late = readiness(left: .zero)
        #expect(late.isReady && late.warnings.map(\.code) == [.missing])
        // The clock was set.
        #expect(!readiness(left: .seconds(1), wall: Self.wall - 1_000_000).isReady)
        #expect(!readiness(left: .seconds(1), wall: Self.wall + 1_000_000).isReady)
    }

    @Test func theMessageLagSumsAllPartitions() {
        let change: (inout AgentFacts) -> Void = { $0.consumer.ends = [0: 13, 1: 24] }
        #expect(codes(.messages(7), change).isEmpty)
        #expect(codes(.messages(6), change) == [.lag])
    }

    @Test func theTimeLagIsThatOfTheWorstPartition() {
        // The node reads current messages, but hasn't reached the end for 40 seconds.
        #expect(
            codes {
                $0.consumer.ends[1] = 1000
                $0.consumer.caughtUpAt[1] = Self.now - .seconds(40)
            }.isEmpty)
        #expect(
            codes {
                $0.consumer.ends[1] = 1000
                $0.consumer.appended[1] = Self.wall - 40_000
                $0.consumer.caughtUpAt[1] = Self.now - .seconds(40)
            } == [.lag])
        #expect(
            codes(.time(.seconds(41))) {
                $0.consumer.ends[1] = 1000
                $0.consumer.appended[1] = Self.wall - 40_000
                $0.consumer.caughtUpAt[1] = Self.now - .seconds(40)
            }.isEmpty)
    }

    @Test func aMessageAfterAnIdleHourCausesNoLagOfAnHour() {
        #expect(
            codes {
                $0.consumer.ends[0] = 11
                $0.consumer.caughtUpAt[0] = Self.now - .seconds(1)
            }.isEmpty)
    }

    @Test func theTimeLagOfANodeThatWasAwayIsTheAgeOfItsMessages() {
        let facts = facts {
            $0.consumer.ends[0] = 5000
            $0.consumer.caughtUpAt[0] = nil
        }
        #expect(facts.lags.first == .init(partition: 0, messages: 4990, time: .seconds(3600)))
        // The lag of a node that has read nothing yet counts from its start.
        let fresh = self.facts {
            $0.consumer.ends[0] = 5000
            $0.consumer.caughtUpAt = [:]
            $0.consumer.appended = [:]
        }
        #expect(fresh.lags.first?.time == .seconds(1000))
    }

    @Test func theAnswerListsAllReasons() {
        let codes = codes(.messages(1)) {
            $0.consumer.ends[0] = 100
            $0.consumer.problem = "x"
            $0.publisher.problem = "y"
        }
        #expect(codes == [.reading, .lag, .publishing])
    }
}
