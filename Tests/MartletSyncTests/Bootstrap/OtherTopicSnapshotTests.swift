import Foundation
import MartletSync
import MartletTestSupport
import Testing

/// Snapshots of another topic, which were copied or mirrored to the snapshot topic.
@Suite struct OtherTopicSnapshotTests {
    /// Its offsets are those of the other topic, however high they are.
    @Test func aSnapshotOfAnotherTopicIsLoadedOnce() throws {
        let lab = try SnapshotLab(partitions: 1)
        let a = try lab.node("a")
        try a.write("INSERT INTO setting VALUES ('a', 1)")
        try exchange([a])
        try lab.prune()
        let other = try TestNode(
            "other", bus: InMemoryBus(topic: "u"), snapshots: lab.snapshots, directory: lab.directory,
            schema: lab.schema)
        for number in 1...3 { try other.write("INSERT INTO trip(name) VALUES ('\(number)')") }
        try exchange([other])
        try other.makeSnapshot()
        let b = try lab.node("b")
        try b.consume()
        #expect(try b.rows("SELECT count(*) FROM trip") == ["3"])
        let wanted = try WantedOffsets.load(b.engine.session)
        #expect(!wanted.isEmpty)
        let snapshots = try #require(b.snapshots)
        #expect(try !snapshots.hasCandidate(needing: wanted, partitionCount: 1))
        #expect(try snapshots.newestHeader(covering: WantedOffsets(), partitionCount: 1) == nil)
        // The newest one may be of the other topic.
        let made = try a.makeSnapshot()
        try other.makeSnapshot()
        let newest = try snapshots.newestHeader(covering: WantedOffsets(), partitionCount: 1)
        #expect(newest.flatMap { NodeID(bytes: $0.snapshot) } == NodeID(made.id))
        try b.consume()
        #expect(try WantedOffsets.load(b.engine.session).isEmpty)
        #expect(try b.rows("SELECT key FROM setting") == ["a"])
    }
}
