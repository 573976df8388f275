package import MartletSync
import Synchronization

/// The partitions that have no leader at the moment.
package final class LeaderlessPartitions: Sendable {
    private let current = Mutex<Set<Int32>>([])

    package var all: Set<Int32> {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    package init() {}
}

/// A bus with partitions that have no leader. Consumers read them once they have one.
package struct LeaderlessBus: ForwardingBus {
    package let inner: InMemoryBus
    package let leaderless: LeaderlessPartitions

    package init(_ inner: InMemoryBus, _ leaderless: LeaderlessPartitions = LeaderlessPartitions()) {
        self.inner = inner
        self.leaderless = leaderless
    }

    package func makeConsumer() throws(BusError) -> any BusConsumer {
        LeaderlessConsumer(try inner.makeConsumer(), late: try inner.makeConsumer(), leaderless)
    }
}

private final class LeaderlessConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    /// Reads partitions that had no leader when they were assigned.
    private let late: any BusConsumer
    private let leaderless: LeaderlessPartitions
    private let waiting = Mutex<[PartitionPosition]>([])

    init(_ inner: any BusConsumer, late: any BusConsumer, _ leaderless: LeaderlessPartitions) {
        self.inner = inner
        self.late = late
        self.leaderless = leaderless
    }

    var partitionsWithoutLeader: Set<Int32> { leaderless.all }

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
