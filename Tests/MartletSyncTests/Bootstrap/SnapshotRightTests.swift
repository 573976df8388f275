import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Nodes that may not read the snapshot topic, or can't at the moment.
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

    /// It has skipped what the topic no longer has, and lacks no other message.
    @Test(arguments: [false, true])
    func aNodeThatWaitsForASnapshotReadsOnWhileItCannotLookForOne(restarts: Bool) throws {
        let lab = try SnapshotLab(partitions: 1)
        let a = try lab.node("a")
        let snapshots = InterruptedBus(lab.snapshots)
        let b = try lab.node("b", snapshots: snapshots)
        try a.write("INSERT INTO trip(name) VALUES ('one')")
        try exchange([a])
        try lab.prune()
        try a.write("INSERT INTO trip(name) VALUES ('two')")
        try a.publish()
        try b.consume()
        snapshots.isInterrupted.withLock { $0 = true }
        if restarts { try b.restart() }
        try a.write("INSERT INTO trip(name) VALUES ('three')")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT name FROM trip ORDER BY name") == ["three", "two"])
        snapshots.isInterrupted.withLock { $0 = false }
        try a.makeSnapshot()
        try b.consume()
        try expectSame([a, b])
    }
}

/// A bus that can be unreachable.
private final class InterruptedBus: ForwardingBus {
    let inner: InMemoryBus
    let isInterrupted = Mutex(false)

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeConsumer() throws(BusError) -> any BusConsumer {
        if isInterrupted.withLock(\.self) { throw BusError(.unreachable, "there is no leader", isRetriable: true) }
        return try inner.makeConsumer()
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
