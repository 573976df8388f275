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
private final class FailingBus: ForwardingBus {
    let inner: InMemoryBus
    let fails = Mutex(false)

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeConsumer() throws(BusError) -> any BusConsumer { FailingConsumer(try inner.makeConsumer(), self) }
}

private final class FailingConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    private let bus: FailingBus

    init(_ inner: any BusConsumer, _ bus: FailingBus) {
        self.inner = inner
        self.bus = bus
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        guard bus.fails.withLock({ $0 }) else { return try inner.poll(maxCount: maxCount, timeout: timeout) }
        return ConsumerBatch(events: [.error(BusError(.other, "the broker is confused", isRetriable: true))])
    }
}
