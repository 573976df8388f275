import MartletSync
import MartletTestSupport

/// A bus whose partitions end with a record that consumers never get, like the marker that ends a Kafka transaction:
/// the end of a partition lies one offset after that of its next message.
struct MarkedBus: ForwardingBus {
    let inner: InMemoryBus

    func makeConsumer() throws(BusError) -> any BusConsumer { MarkedConsumer(try inner.makeConsumer()) }
}

private final class MarkedConsumer: ForwardingConsumer {
    let inner: any BusConsumer

    init(_ inner: any BusConsumer) { self.inner = inner }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        var marks = try inner.watermarks(partition: partition, timeout: timeout)
        marks.high += 1
        return marks
    }
    func knownEnd(of partition: Int32) -> Int64? { inner.knownEnd(of: partition).map { $0 + 1 } }

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
