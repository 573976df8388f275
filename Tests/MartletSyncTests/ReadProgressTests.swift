import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// How far a node has read partitions and origins, as its views show it.
@Suite struct ReadProgressTests {
    @Test func offsetsBelongToTheirTopicAndPartition() throws {
        let node = try Lab().node("a")
        let positions = [0, 7, 12].map { PartitionPosition(partition: $0, offset: 1 << 40 + Int64($0)) }
        for topic in ["t", "t/1", "2/t"] {
            try TopicPositions(node.engine.session, topic: topic).reset(to: positions, forgetsOwn: false)
            #expect(try node.engine.offsets(topic: topic) == positions)
            #expect(try TopicPositions(node.engine.session, topic: topic).known() == [])
        }
        #expect(try Set(node.status().partitions.map(\.topic)) == ["2/t", "t", "t/1"])
        _ = try TopicPositions(node.engine.session, topic: "t").adopt(partitionCount: 13)
        #expect(try TopicPositions(node.engine.session, topic: "t").adopt(partitionCount: 14))
        #expect(try Set(node.status().partitions.map(\.topic)) == ["2/t", "t/1"])
    }

    @Test func resettingAnOffsetForgetsTheLastReadTransaction() throws {
        let lab = try Lab()
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a, b])
        let read = try b.store.read { try ReadProgress.snapshotPositions($0, of: "t") }
        #expect(read.map(\.next) == [1])
        #expect(read.allSatisfy { !$0.origin.isEmpty && $0.sequence == 1 && $0.hasAppendedMs })
        let origins = try b.status().origins
        #expect(origins.map(\.applied) == [1] && origins[0].heard != nil)
        try TopicPositions(b.engine.session, topic: "t").reset(
            to: [PartitionPosition(partition: 0, offset: 1)], forgetsOwn: false)
        let reset = try b.store.read { try ReadProgress.snapshotPositions($0, of: "t") }
        #expect(reset.map(\.next) == [1])
        #expect(reset.allSatisfy { $0.origin.isEmpty && $0.sequence == 0 && !$0.hasAppendedMs })
        #expect(try b.status().origins == origins)
    }

    /// Otherwise, the node would lag by one for good, and begin no check.
    @Test func p202AControlRecordAtTheEndOfAPartitionIsNoMessageThatWaits() throws {
        let lab = try AntiEntropyLab()
        defer { withExtendedLifetime(lab) {} }
        let node = try lab.lab.node("a", bus: MarkedBus(inner: lab.lab.bus))
        let antiEntropy = AntiEntropy(engine: node.engine, bus: lab.checks, topic: "t")
        func expectCaughtUp() throws {
            let lags = node.consumer.currentProgress.lags(at: .now, milliseconds: WallClock.milliseconds)
            #expect(lags.map(\.messages) == [0])
            #expect(node.consumer.currentProgress.caughtUpAt[0] != nil)
            #expect(try antiEntropy.begin())
        }
        try node.consume()
        try expectCaughtUp()
        try node.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([node])
        try expectCaughtUp()
        node.consumer.disconnect()
        try node.consume()
        try expectCaughtUp()
    }

    /// The publisher's cursor passes remote transactions, up to the commit that moves it.
    @Test func remoteTransactionsHoldNoHistoryBack() throws {
        let lab = try Lab()
        let a = try lab.node("a")
        let c = try lab.node("c")
        try a.write(
            """
            WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            INSERT INTO setting SELECT 'key ' || i, i FROM n
            """)
        try a.publish()
        try c.consume()
        #expect(try c.store.lastToken()?.transaction == 1001)
        #expect(try c.store.read { try Cursors.position($0, Cursors.publisher) } == 1001)
    }
}
