import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Partitions that no broker leads when a node connects: all brokers that have them are down.
@Suite struct LeaderlessPartitionTests {
    @Test func otherPartitionsAreReadMeanwhile() throws {
        let lab = try Lab(partitions: 2)
        let bus = LeaderlessBus(lab.bus)
        let (a, b) = (try lab.node("a"), try lab.node("b", bus: bus))
        try a.write("INSERT INTO setting VALUES ('one', 1)")
        try exchange([a, b])
        let used = try #require(try messages(lab.bus).first).position.partition
        bus.leaderless.withLock { $0 = [1 - used] }
        try b.restart()
        try a.write("INSERT INTO setting VALUES ('two', 1)")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["one", "two"])
        #expect(b.consumer.currentProgress.problem == "Without a leader: partitions [\(1 - used)]")
        #expect(!b.consumer.currentProgress.hasReadToEnd)
        bus.leaderless.withLock { $0 = [] }
        try b.consume()
        #expect(b.consumer.currentProgress.problem == nil)
        #expect(b.consumer.currentProgress.hasReadToEnd)
    }

    /// Otherwise whoever watches the lag would see none.
    @Test func theLastKnownEndOfSuchAPartitionIsKept() throws {
        let lab = try Lab(partitions: 2)
        let bus = LeaderlessBus(lab.bus)
        let (a, b) = (try lab.node("a"), try lab.node("b", bus: bus))
        try a.write("INSERT INTO setting VALUES ('one', 1)")
        try exchange([a, b])
        let used = try #require(try messages(lab.bus).first).position.partition
        bus.leaderless.withLock { $0 = [used] }
        b.consumer.disconnect()
        try b.consume()
        #expect(b.consumer.currentProgress.problem == "Without a leader: partitions [\(used)]")
        #expect(b.consumer.currentProgress.ends == [used: 1, 1 - used: 0])
    }

    /// - Parameter isCut: true if the topic drops its first message before there is a leader again.
    @Test(arguments: [false, true]) func whatTheyHaveIsReadAsUsualOnceTheyHaveALeader(isCut: Bool) throws {
        let lab = try Lab(partitions: 2)
        let bus = LeaderlessBus(lab.bus)
        let (a, b) = (try lab.node("a"), try lab.node("b", bus: bus))
        try a.write("INSERT INTO setting VALUES ('one', 1)")
        try exchange([a, b])
        let used = try #require(try messages(lab.bus).first).position.partition
        bus.leaderless.withLock { $0 = [used] }
        try b.restart()
        try a.write("INSERT INTO setting VALUES ('two', 1)")
        try a.publish()
        try b.consume()
        #expect(try b.rows("SELECT key FROM setting") == ["one"])
        if isCut { lab.bus.truncate(partition: used, upTo: 1) }
        bus.leaderless.withLock { $0 = [] }
        let report = try b.consume()
        #expect(report.applied == 1 && report.rewound.isEmpty && report.gaps.isEmpty)
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["one", "two"])
        #expect(b.consumer.currentProgress.problem == nil)
    }
}

/// A bus with partitions that have no leader.
private final class LeaderlessBus: ForwardingBus {
    let inner: InMemoryBus
    let leaderless = Mutex<Set<Int32>>([])

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeConsumer() throws(BusError) -> any BusConsumer {
        LeaderlessConsumer(try inner.makeConsumer(), late: try inner.makeConsumer(), self)
    }
}

private final class LeaderlessConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    /// Reads partitions that had no leader when they were assigned.
    private let late: any BusConsumer
    private let bus: LeaderlessBus
    private let waiting = Mutex<[PartitionPosition]>([])

    init(_ inner: any BusConsumer, late: any BusConsumer, _ bus: LeaderlessBus) {
        self.inner = inner
        self.late = late
        self.bus = bus
    }

    var partitionsWithoutLeader: Set<Int32> { bus.leaderless.withLock { $0 } }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        guard !partitionsWithoutLeader.contains(partition) else {
            throw BusError(.unreachable, "partition \(partition) has no leader", isRetriable: true)
        }
        return try inner.watermarks(partition: partition, timeout: timeout)
    }

    func knownEnd(of partition: Int32) -> Int64? {
        partitionsWithoutLeader.contains(partition) ? nil : inner.knownEnd(of: partition)
    }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        let leaderless = partitionsWithoutLeader
        try inner.assign(positions.filter { !leaderless.contains($0.partition) })
        waiting.withLock { $0 = positions.filter { leaderless.contains($0.partition) } }
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        let leaderless = partitionsWithoutLeader
        let found = waiting.withLock { waiting in
            let found = waiting.filter { !leaderless.contains($0.partition) }
            waiting.removeAll { !leaderless.contains($0.partition) }
            return found
        }
        if !found.isEmpty { try late.assign(found) }
        var batch = try late.poll(maxCount: maxCount, timeout: .zero)
        let others = try inner.poll(maxCount: maxCount, timeout: timeout)
        batch.messages += others.messages
        batch.events += others.events
        return batch
    }

    func close() {
        inner.close()
        late.close()
    }
}
