import MartletSync
import MartletTestSupport

/// A bus whose only partition keeps a limited number of messages, like a topic that retains few bytes.
struct ShortBus: ForwardingBus {
    let inner: InMemoryBus
    let limit: Int64

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        Producer(bus: self, inner: try inner.makeProducer(acknowledge: acknowledge))
    }

    func truncate() throws(BusError) {
        let consumer = try inner.makeConsumer()
        defer { consumer.close() }
        let high = try consumer.watermarks(partition: 0, timeout: .seconds(1)).high
        if high > limit { inner.truncate(partition: 0, upTo: high - limit) }
    }

    final class Producer: BusProducer {
        let bus: ShortBus
        let inner: any BusProducer

        init(bus: ShortBus, inner: any BusProducer) {
            self.bus = bus
            self.inner = inner
        }

        func send(_ message: OutgoingMessage) throws(BusError) {
            try inner.send(message)
            try bus.truncate()
        }

        func flush(timeout: Duration) -> Bool { inner.flush(timeout: timeout) }
        func close() { inner.close() }
    }
}
