package import MartletSync

/// A bus that passes everything on to another one. A test double conforms to it, and writes only what it does
/// otherwise.
package protocol ForwardingBus: Bus {
    var inner: InMemoryBus { get }
}

extension ForwardingBus {
    package var topic: String { inner.topic }

    package func makeProducer(
        acknowledge: @escaping @Sendable (Acknowledgement) -> Void
    ) throws(BusError) -> any BusProducer {
        try inner.makeProducer(acknowledge: acknowledge)
    }

    package func makeConsumer() throws(BusError) -> any BusConsumer { try inner.makeConsumer() }
}

/// The same for the consumers of a bus. They store no offsets for lag tools.
package protocol ForwardingConsumer: BusConsumer {
    var inner: any BusConsumer { get }
}

extension ForwardingConsumer {
    package func partitionCount(timeout: Duration) throws(BusError) -> Int {
        try inner.partitionCount(timeout: timeout)
    }

    package var partitionsWithoutLeader: Set<Int32> { inner.partitionsWithoutLeader }

    package func assign(_ positions: [PartitionPosition]) throws(BusError) { try inner.assign(positions) }

    package func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        try inner.watermarks(partition: partition, timeout: timeout)
    }

    package func knownEnd(of partition: Int32) -> Int64? { inner.knownEnd(of: partition) }
    package func publishProgress(_ positions: [PartitionPosition], of node: String) {}
    package func close() { inner.close() }

    package func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try inner.poll(maxCount: maxCount, timeout: timeout)
    }
}
