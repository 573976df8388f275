import MartletSync
import MartletTestSupport
import Testing

/// Partitions that no broker leads when a node connects: all brokers that have them are down.
@Suite struct LeaderlessPartitionTests {
    private struct Start {
        let lab: Lab
        let a: TestNode
        /// The node for which partitions have no leader.
        let b: TestNode
        let leaderless: LeaderlessPartitions
        /// The partition that has a message.
        let used: Int32
    }

    /// Two nodes of a topic with two partitions have the same row.
    private func start() throws -> Start {
        let lab = try Lab(partitions: 2)
        let bus = LeaderlessBus(lab.bus)
        let (a, b) = (try lab.node("a"), try lab.node("b", bus: bus))
        try a.write("INSERT INTO setting VALUES ('one', 1)")
        try exchange([a, b])
        let used = try #require(try messages(lab.bus).first).position.partition
        return Start(lab: lab, a: a, b: b, leaderless: bus.leaderless, used: used)
    }

    @Test func otherPartitionsAreReadMeanwhile() throws {
        let start = try start()
        let (a, b, leaderless, used) = (start.a, start.b, start.leaderless, start.used)
        leaderless.all = [1 - used]
        try b.restart()
        try a.write("INSERT INTO setting VALUES ('two', 1)")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["one", "two"])
        #expect(b.consumer.currentProgress.problem == "Without a leader: partitions [\(1 - used)]")
        #expect(!b.consumer.currentProgress.hasReadToEnd)
        leaderless.all = []
        try b.consume()
        #expect(b.consumer.currentProgress.problem == nil)
        #expect(b.consumer.currentProgress.hasReadToEnd)
    }

    /// Otherwise whoever watches the lag would see none.
    @Test func theLastKnownEndOfSuchAPartitionIsKept() throws {
        let start = try start()
        let (b, leaderless, used) = (start.b, start.leaderless, start.used)
        leaderless.all = [used]
        b.consumer.disconnect()
        try b.consume()
        #expect(b.consumer.currentProgress.problem == "Without a leader: partitions [\(used)]")
        #expect(b.consumer.currentProgress.ends == [used: 1, 1 - used: 0])
    }

    /// - Parameter isCut: true if the topic drops its first message before there is a leader again.
    @Test(arguments: [false, true]) func whatTheyHaveIsReadAsUsualOnceTheyHaveALeader(isCut: Bool) throws {
        let start = try start()
        let (a, b, leaderless, used) = (start.a, start.b, start.leaderless, start.used)
        leaderless.all = [used]
        try b.restart()
        try a.write("INSERT INTO setting VALUES ('two', 1)")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting") == ["one"])
        if isCut { start.lab.bus.truncate(partition: used, upTo: 1) }
        leaderless.all = []
        let report = try b.consume()
        #expect(report.applied == 1 && report.rewound.isEmpty && report.gaps.isEmpty)
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["one", "two"])
        #expect(b.consumer.currentProgress.problem == nil)
    }
}
