import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@Suite struct BrokerErrorTests {
    /// The connection stays, and each poll succeeds. But nothing is read.
    @Test func errorsThatTheBrokerAnswersHoldReadingUpUntilTheyStop() throws {
        let lab = try Lab()
        let bus = FailingBus(lab.bus)
        let now = Mutex(ContinuousClock.now)
        let engine = try SyncEngine(path: lab.node("a").path, instant: { now.withLock { $0 } })
        let consumer = Consumer(engine: engine, bus: bus)
        func problem(after seconds: Int, fails: Bool) -> String? {
            now.withLock { $0 += .seconds(seconds) }
            bus.fails.withLock { $0 = fails }
            consumer.step(timeout: .milliseconds(1))
            return consumer.currentProgress.problem
        }
        #expect(problem(after: 0, fails: false) == nil)
        #expect(problem(after: 1, fails: true)?.contains("the broker is confused") == true)
        #expect(problem(after: 10, fails: true) != nil)
        // Silence says nothing: there may be nothing to read.
        #expect(problem(after: 10, fails: false) != nil)
        #expect(problem(after: 1, fails: false) == nil)
    }
}

/// A bus whose consumers get nothing but errors for a while.
private final class FailingBus: Bus {
    let inner: InMemoryBus
    let fails = Mutex(false)
    var topic: String { inner.topic }

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        try inner.makeProducer(acknowledge: acknowledge)
    }

    func makeConsumer() throws(BusError) -> any BusConsumer { FailingConsumer(try inner.makeConsumer(), self) }
}

private final class FailingConsumer: BusConsumer {
    private let inner: any BusConsumer
    private let bus: FailingBus

    init(_ inner: any BusConsumer, _ bus: FailingBus) {
        self.inner = inner
        self.bus = bus
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
        guard bus.fails.withLock({ $0 }) else { return try inner.poll(maxCount: maxCount, timeout: timeout) }
        return ConsumerBatch(events: [.error(BusError(.other, "the broker is confused", isRetriable: true))])
    }
}
