import MartletSync
import MartletTestSupport
import Testing

/// Nodes that may not read the snapshot topic.
@Suite struct SnapshotRightTests {
    /// Only a snapshot could show that the topic is still the same, since it has nothing more of what the node has
    /// read. But nothing is known to be missing.
    @Test func aNodeThatMayNotReadSnapshotsReadsAnExpiredTopicOn() throws {
        let lab = try SnapshotLab(partitions: 1)
        let a = try lab.node("a")
        let b = try lab.node("b", snapshots: ForbiddenBus(inner: lab.snapshots))
        try a.write("INSERT INTO trip(name) VALUES ('one')")
        try exchange([a, b])
        try lab.prune()
        try b.restart()
        try a.write("INSERT INTO trip(name) VALUES ('two')")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT name FROM trip ORDER BY name") == ["one", "two"])
    }
}

/// A bus whose topic this user may not read.
private struct ForbiddenBus: ForwardingBus {
    let inner: InMemoryBus

    func makeConsumer() throws(BusError) -> any BusConsumer { ForbiddenConsumer(try inner.makeConsumer()) }
}

private final class ForbiddenConsumer: ForwardingConsumer {
    let inner: any BusConsumer

    init(_ inner: any BusConsumer) { self.inner = inner }

    func partitionCount(timeout: Duration) throws(BusError) -> Int {
        throw BusError(.unauthorized, "this user may not read the topic")
    }
}
