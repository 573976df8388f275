import MartletSync

/// A bus that passes everything on to another one. A test double conforms to it, and writes only what it does
/// otherwise.
protocol ForwardingBus: Bus {
    var inner: InMemoryBus { get }
}

extension ForwardingBus {
    var topic: String { inner.topic }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        try inner.makeProducer(acknowledge: acknowledge)
    }

    func makeConsumer() throws(BusError) -> any BusConsumer { try inner.makeConsumer() }
}

/// The same for the consumers of a bus. They store no offsets for lag tools.
protocol ForwardingConsumer: BusConsumer {
    var inner: any BusConsumer { get }
}

extension ForwardingConsumer {
    func partitionCount(timeout: Duration) throws(BusError) -> Int { try inner.partitionCount(timeout: timeout) }

    func assign(_ positions: [PartitionPosition]) throws(BusError) { try inner.assign(positions) }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        try inner.watermarks(partition: partition, timeout: timeout)
    }

    func knownEnd(of partition: Int32) -> Int64? { inner.knownEnd(of: partition) }
    func publishProgress(_ positions: [PartitionPosition], of node: String) {}
    func close() { inner.close() }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try inner.poll(maxCount: maxCount, timeout: timeout)
    }
}
