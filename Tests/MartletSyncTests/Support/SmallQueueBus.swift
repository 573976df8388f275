import MartletSync
import MartletTestSupport
import Synchronization

/// A bus whose producers queue so few messages at once that a large transaction doesn't fit.
struct SmallQueueBus: ForwardingBus {
    let inner: InMemoryBus
    let limit: Int

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        let queued = QueuedCount()
        let inner = try inner.makeProducer { acknowledgement in
            queued.value.withLock { $0 -= 1 }
            acknowledge(acknowledgement)
        }
        return Producer(inner: inner, queued: queued, limit: limit)
    }

    final class QueuedCount: Sendable {
        let value = Mutex(0)
    }

    final class Producer: BusProducer {
        let inner: any BusProducer
        let queued: QueuedCount
        let limit: Int

        init(inner: any BusProducer, queued: QueuedCount, limit: Int) {
            self.inner = inner
            self.queued = queued
            self.limit = limit
        }

        func send(_ message: OutgoingMessage) throws(BusError) {
            let hasRoom = queued.value.withLock { count in
                if count >= limit { return false }
                count += 1
                return true
            }
            guard hasRoom else { throw BusError(.queueFull, "full", isRetriable: true) }
            try inner.send(message)
        }

        func flush(timeout: Duration) -> Bool { inner.flush(timeout: timeout) }
        func close() { inner.close() }
    }
}
