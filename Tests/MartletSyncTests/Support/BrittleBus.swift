import MartletSync
import Synchronization

/// A bus over a bad link: each consumer loses its connection after some polls, and a poll returns few messages.
final class BrittleBus: Bus {
    let inner: InMemoryBus
    /// The number of polls until a consumer that is made from now on loses its connection.
    let pollsOfEach = Mutex(Int.max)
    var topic: String { inner.topic }

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        try inner.makeProducer(acknowledge: acknowledge)
    }

    func makeConsumer() throws(BusError) -> any BusConsumer {
        BrittleConsumer(try inner.makeConsumer(), polls: pollsOfEach.withLock { $0 })
    }
}

private final class BrittleConsumer: BusConsumer {
    private let inner: any BusConsumer
    private let pollsLeft: Mutex<Int>

    init(_ inner: any BusConsumer, polls: Int) {
        self.inner = inner
        pollsLeft = Mutex(polls)
    }

    func partitionCount(timeout: Duration) throws(BusError) -> Int { try inner.partitionCount(timeout: timeout) }
    func assign(_ positions: [PartitionPosition]) throws(BusError) { try inner.assign(positions) }
    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        try inner.watermarks(partition: partition, timeout: timeout)
    }
    func knownEnd(of partition: Int32) -> Int64? { inner.knownEnd(of: partition) }
    func publishProgress(_ positions: [PartitionPosition], of node: String) {}
    func close() { inner.close() }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        let isCut = pollsLeft.withLock { left in
            left -= 1
            return left < 0
        }
        if isCut { return ConsumerBatch(events: [.disconnected(reason: "the link is cut")]) }
        return try inner.poll(maxCount: min(maxCount, 2), timeout: timeout)
    }
}
