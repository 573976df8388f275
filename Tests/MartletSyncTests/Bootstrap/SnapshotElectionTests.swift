import Foundation
import MartletTestSupport
import Testing

@testable import MartletSync

/// Who makes snapshots.
@Suite struct SnapshotElectionTests {
    private let nodes = (0..<20).map { _ in NodeID(UUID()) }
    private let begin = Date(timeIntervalSince1970: 1_000_000)

    private func election(_ node: NodeID) -> SnapshotElection {
        var configuration = SnapshotConfiguration()
        configuration.interval = .seconds(1000)
        configuration.minTransactions = 10
        return SnapshotElection(node: node, configuration: configuration, since: begin)
    }

    private func snapshot(_ maker: NodeID, at time: TimeInterval, state: SnapshotInfo.State = .complete) -> SnapshotInfo
    {
        SnapshotInfo(
            id: UUID(), maker: maker, makerName: "", made: begin, arrived: begin.addingTimeInterval(time), state: state,
            messageCount: 1, byteCount: 1, positions: [0: 100])
    }

    private func due(_ node: NodeID, _ snapshots: [SnapshotInfo], at time: TimeInterval, read: Int64 = 200) -> Bool {
        election(node).isDue(snapshots, .init(positions: [0: read]), now: begin.addingTimeInterval(time))
    }

    @Test func whoMadeTheLastOneMakesTheNextAndOthersStepInOneAfterTheOther() {
        let made = [snapshot(nodes[0], at: 0)]
        #expect(nodes.filter { due($0, made, at: 999) } == [])
        #expect(nodes.filter { due($0, made, at: 1001) } == [nodes[0]])
        let later = (1000...1260).map { time in nodes.filter { due($0, made, at: TimeInterval(time)) }.count }
        #expect(later == later.sorted() && later.last == nodes.count && Set(later).count > 5)
    }

    @Test func withoutAnyEachWaitsForAnotherWhile() {
        #expect(nodes.filter { due($0, [], at: 10) } == [])
        #expect(nodes.filter { due($0, [], at: 61) }.count == nodes.count)
        #expect(Set((10...61).map { time in nodes.filter { due($0, [], at: TimeInterval(time)) }.count }).count > 5)
    }

    @Test func oneThatIsBeingMadeIsWaitedForUntilItsMakerIsGone() {
        let made = [snapshot(nodes[1], at: 1500, state: .unfinished), snapshot(nodes[0], at: 0)]
        #expect(!due(nodes[0], made, at: 1600))
        #expect(due(nodes[0], made, at: 1801))
        #expect(due(nodes[1], made, at: 1600))
    }

    @Test func nothingIsMadeOfNothingNewOrByWhoLacksSomething() {
        let made = [snapshot(nodes[0], at: 0)]
        #expect(!due(nodes[0], made, at: 5000, read: 109))
        #expect(due(nodes[0], made, at: 5000, read: 110))
        let now = begin.addingTimeInterval(1400)
        let election = election(nodes[0])
        #expect(election.isDue(made, .init(positions: [0: 200]), now: now))
        #expect(!election.isDue(made, .init(positions: [0: 200], hasGaps: true), now: now))
        #expect(election.isDue(made, .init(positions: [0: 200], hasGaps: true), now: now.addingTimeInterval(200)))
        #expect(!election.isDue(made, .init(positions: [0: 200], isWaiting: true), now: now))
        var never = SnapshotConfiguration()
        never.interval = .zero
        #expect(
            !SnapshotElection(node: nodes[0], configuration: never, since: begin).isDue(
                made, .init(positions: [0: 2000]), now: .distantFuture))
    }

    @Test func aKeeperMakesOneWhenItIsDueAndOnlyOne() throws {
        let lab = try SnapshotLab()
        let clock = TestClock()
        let a = try lab.node("a", clock: clock)
        for number in 0..<5 { try a.write("INSERT INTO setting VALUES ('\(number)', 1)") }
        try exchange([a])
        var configuration = SnapshotConfiguration()
        configuration.interval = .seconds(100)
        configuration.minTransactions = 5
        let topic = SnapshotTopic(engine: a.engine, bus: lab.snapshots, topic: "t", configuration: configuration)
        let keeper = SnapshotKeeper(engine: a.engine, snapshots: topic, topic: "t")
        #expect(try keeper.step() == nil)
        clock.milliseconds += 60_000
        #expect(try keeper.step()?.isComplete == true)
        #expect(try keeper.step() == nil)
        clock.milliseconds += 1_000_000
        // Nothing has come since.
        #expect(try keeper.step() == nil)
        for number in 5..<10 { try a.write("INSERT INTO setting VALUES ('\(number)', 1)") }
        try exchange([a])
        #expect(try keeper.step()?.isComplete == true)
        #expect(try topic.list().count == 2)
    }
}
