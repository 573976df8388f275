import Foundation
import MartletSync
import Testing

/// When a node looks for its turn to make a snapshot, without a store or a topic.
@Suite struct SnapshotCycleTests {
    private let start = ContinuousClock.now
    private let begin = Date(timeIntervalSince1970: 1_000_000)
    private let node = NodeID(UUID())
    private let other = NodeID(UUID())
    /// Enough messages for a snapshot, and too few.
    private let busy = SnapshotElection.Standing(positions: [0: 200])
    private let quiet = SnapshotElection.Standing(positions: [0: 1])

    private func cycle() -> SnapshotCycle {
        var configuration = SnapshotConfiguration()
        configuration.interval = .seconds(1000)
        configuration.minTransactions = 10
        return SnapshotCycle(configuration, at: start)
    }

    /// - Parameters:
    ///   - time: in seconds after the start.
    ///   - ahead: how far the wall clock is ahead.
    private func present(_ time: TimeInterval, ahead: TimeInterval = 0) -> SnapshotCycle.Present {
        SnapshotCycle.Present(instant: start + .seconds(time), date: begin.addingTimeInterval(time + ahead))
    }

    private func snapshot(_ maker: NodeID, at time: TimeInterval) -> SnapshotInfo {
        SnapshotInfo(
            id: UUID(), maker: maker, makerName: "", made: begin, arrived: begin.addingTimeInterval(time),
            state: .complete, messageCount: 1, byteCount: 1, positions: [0: 100])
    }

    /// One look, as far as nothing fails.
    private func look(
        _ cycle: inout SnapshotCycle, _ standing: SnapshotElection.Standing, _ snapshots: [SnapshotInfo] = [],
        at time: TimeInterval, ahead: TimeInterval = 0
    ) -> SnapshotCycle.Action {
        let now = present(time, ahead: ahead)
        let examined = cycle.handle(.examined(standing), of: node, at: now)
        guard examined == .list else { return examined }
        return cycle.handle(.listed(snapshots, standing), of: node, at: now)
    }

    private func handle(
        _ cycle: inout SnapshotCycle, _ event: SnapshotCycle.Event, at time: TimeInterval, ahead: TimeInterval = 0
    ) -> SnapshotCycle.Action {
        cycle.handle(event, of: node, at: present(time, ahead: ahead))
    }

    @Test func aNodeWithTooFewMessagesDoesNotAskTheBroker() {
        var cycle = cycle()
        #expect(handle(&cycle, .examined(quiet), at: 5000) == .wait)
        #expect(handle(&cycle, .examined(busy), at: 0) == .list)
        #expect(cycle.state == .watching && cycle.delay == .seconds(50))
    }

    @Test func aSnapshotIsMadeWhenItIsThisNodesTurn() {
        var cycle = cycle()
        #expect(look(&cycle, busy, at: 1) == .wait)
        #expect(look(&cycle, busy, at: 61) == .make(isAnswer: false))
        #expect(cycle.state == .making(request: nil, isAnswer: false))
        #expect(handle(&cycle, .made, at: 65) == .wait)
        #expect(cycle.state == .watching)
        #expect(look(&cycle, busy, [snapshot(node, at: 65)], at: 70) == .wait)
    }

    @Test func theFirstRequestEndsTheWaitAndFurtherOnesDoNot() {
        var cycle = cycle()
        #expect(handle(&cycle, .requested, at: 10) == .look)
        #expect(cycle.delay == .seconds(1))
        #expect(handle(&cycle, .requested, at: 11) == .wait)
        #expect(cycle.state == .requested(since: start + .seconds(10)))
    }

    @Test func aRequestIsAnsweredWithinTwentySecondsWhateverTheNumberOfMessages() {
        var cycle = cycle()
        _ = handle(&cycle, .requested, at: 10)
        #expect(look(&cycle, quiet, at: 30) == .make(isAnswer: true))
        _ = handle(&cycle, .made, at: 40)
        #expect(cycle.state == .watching)
        // A snapshot is large, and a request is not.
        _ = handle(&cycle, .requested, at: 50)
        #expect(look(&cycle, quiet, at: 80) == .wait)
        #expect(cycle.state == .watching)
        _ = handle(&cycle, .requested, at: 650)
        #expect(look(&cycle, quiet, at: 680) == .make(isAnswer: true))
    }

    @Test func aRequestIsDroppedOnceAnotherNodeHasMadeASnapshot() {
        var cycle = cycle()
        _ = handle(&cycle, .requested, at: 10)
        #expect(look(&cycle, quiet, [snapshot(other, at: 15)], at: 30) == .wait)
        #expect(cycle.state == .watching)
    }

    @Test func aRequestThatComesWhileASnapshotIsMadeIsKeptUntilTheNextLook() {
        var cycle = cycle()
        #expect(look(&cycle, busy, at: 61) == .make(isAnswer: false))
        #expect(handle(&cycle, .requested, at: 62) == .look)
        _ = handle(&cycle, .made, at: 65)
        #expect(cycle.state == .requested(since: start + .seconds(62)))
        #expect(look(&cycle, busy, [snapshot(node, at: 65)], at: 66) == .wait)
        #expect(cycle.state == .watching)
    }

    @Test func anAnswerThatFailsIsTriedAgainForTenMinutes() {
        var cycle = cycle()
        _ = handle(&cycle, .requested, at: 0)
        #expect(look(&cycle, quiet, at: 20) == .make(isAnswer: true))
        _ = handle(&cycle, .failed, at: 25)
        #expect(cycle.state == .requested(since: start))
        #expect(look(&cycle, quiet, at: 600) == .make(isAnswer: true))
        _ = handle(&cycle, .failed, at: 601)
        #expect(cycle.state == .watching)
    }

    @Test func aFailedTurnLeavesARequestOpen() {
        var cycle = cycle()
        #expect(look(&cycle, busy, at: 61) == .make(isAnswer: false))
        _ = handle(&cycle, .requested, at: 62)
        _ = handle(&cycle, .failed, at: 63)
        #expect(cycle.state == .requested(since: start + .seconds(62)))
    }

    @Test func failuresSpreadTheLooksUpToAMinuteUntilOneSucceeds() {
        var cycle = cycle()
        _ = handle(&cycle, .requested, at: 0)
        var delays: [Duration] = []
        for time in 0..<8 {
            // The broker can't be asked.
            #expect(handle(&cycle, .examined(quiet), at: TimeInterval(time)) == .list)
            _ = handle(&cycle, .failed, at: TimeInterval(time))
            delays.append(cycle.delay)
        }
        let expected: [Duration] = [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) }
        #expect(delays == expected)
        _ = look(&cycle, quiet, [snapshot(other, at: 5)], at: 100)
        #expect(cycle.state == .watching && cycle.delay == .seconds(50))
    }

    /// The first answer of a time server has set the wall clock back by a year.
    @Test func aRequestIsAnsweredAlthoughTheWallClockWasAheadWhenItCame() {
        var cycle = cycle()
        let year: TimeInterval = 365 * 86_400
        _ = handle(&cycle, .requested, at: 10, ahead: year)
        #expect(look(&cycle, quiet, at: 30) == .make(isAnswer: true))
        _ = handle(&cycle, .made, at: 40, ahead: year)
        _ = handle(&cycle, .requested, at: 650)
        #expect(look(&cycle, quiet, at: 680) == .make(isAnswer: true))
    }

    /// Its own snapshot has a timestamp of its clock.
    @Test func theNextSnapshotIsMadeAlthoughTheWallClockWasAheadAtTheLastOne() {
        var cycle = cycle()
        let year: TimeInterval = 365 * 86_400
        #expect(look(&cycle, busy, at: 61, ahead: year) == .make(isAnswer: false))
        _ = handle(&cycle, .made, at: 65, ahead: year)
        let made = snapshot(node, at: 65 + year)
        #expect(look(&cycle, busy, [made], at: 66, ahead: year) == .wait)
        #expect(look(&cycle, busy, [made], at: 1000) == .wait)
        #expect(look(&cycle, busy, [made], at: 1067) == .make(isAnswer: false))
    }

    /// The clock was ahead at the start, so no snapshot would be due until then.
    @Test func theFirstSnapshotIsMadeAlthoughTheWallClockWasAheadAtTheStart() {
        var cycle = cycle()
        #expect(look(&cycle, busy, at: 1, ahead: 365 * 86_400) == .wait)
        #expect(look(&cycle, busy, at: 61) == .make(isAnswer: false))
    }
}
