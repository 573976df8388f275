import MartletSync

/// A bus whose partitions end with a record that consumers never get, like the marker that ends a Kafka transaction:
/// the end of a partition lies one offset after that of its next message.
struct MarkedBus: Bus {
    let inner: InMemoryBus
    var topic: String { inner.topic }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        try inner.makeProducer(acknowledge: acknowledge)
    }

    func makeConsumer() throws(BusError) -> any BusConsumer { MarkedConsumer(try inner.makeConsumer()) }
}

private final class MarkedConsumer: BusConsumer {
    private let inner: any BusConsumer

    init(_ inner: any BusConsumer) { self.inner = inner }

    func partitionCount(timeout: Duration) throws(BusError) -> Int { try inner.partitionCount(timeout: timeout) }
    func assign(_ positions: [PartitionPosition]) throws(BusError) { try inner.assign(positions) }
    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        var marks = try inner.watermarks(partition: partition, timeout: timeout)
        marks.high += 1
        return marks
    }
    func knownEnd(of partition: Int32) -> Int64? { inner.knownEnd(of: partition).map { $0 + 1 } }
    func publishProgress(_ positions: [PartitionPosition], of node: String) {}
    func close() { inner.close() }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        var batch = try inner.poll(maxCount: maxCount, timeout: timeout)
        batch.events = batch.events.map { event in
            guard case .endOfPartition(var position) = event else { return event }
            position.offset += 1
            return .endOfPartition(position)
        }
        return batch
    }
}
