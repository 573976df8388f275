import MartletSync
import MartletTestSupport
import Synchronization

/// A bus whose messages lie several offsets apart, as if control records lay between them.
final class GappedBus: ForwardingBus {
    let inner: InMemoryBus
    /// The distance between two messages, for consumers that are made from now on.
    let distance = Mutex<Int64>(1)

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeConsumer() throws(BusError) -> any BusConsumer {
        GappedConsumer(try inner.makeConsumer(), distance: distance.withLock { $0 })
    }
}

private final class GappedConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    private let distance: Int64

    init(_ inner: any BusConsumer, distance: Int64) {
        self.inner = inner
        self.distance = distance
    }

    private func outer(_ position: PartitionPosition) -> PartitionPosition {
        PartitionPosition(partition: position.partition, offset: position.offset * distance)
    }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        // From an offset without a message, the next message is read.
        try inner.assign(
            positions.map {
                PartitionPosition(partition: $0.partition, offset: ($0.offset + distance - 1) / distance)
            })
    }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        let marks = try inner.watermarks(partition: partition, timeout: timeout)
        return Watermarks(low: marks.low * distance, high: marks.high * distance)
    }

    func knownEnd(of partition: Int32) -> Int64? { inner.knownEnd(of: partition).map { $0 * distance } }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        var batch = try inner.poll(maxCount: maxCount, timeout: timeout)
        for index in batch.messages.indices {
            batch.messages[index].position = outer(batch.messages[index].position)
        }
        batch.events = batch.events.map { event in
            guard case .endOfPartition(let position) = event else { return event }
            return .endOfPartition(outer(position))
        }
        return batch
    }
}
