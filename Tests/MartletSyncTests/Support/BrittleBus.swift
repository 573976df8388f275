import MartletSync
import MartletTestSupport
import Synchronization

/// A bus over a bad link: each consumer loses its connection after some polls, and a poll returns few messages.
final class BrittleBus: ForwardingBus {
    let inner: InMemoryBus
    /// The number of polls until a consumer that is made from now on loses its connection.
    let pollsOfEach = Mutex(Int.max)

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeConsumer() throws(BusError) -> any BusConsumer {
        BrittleConsumer(try inner.makeConsumer(), polls: pollsOfEach.withLock { $0 })
    }
}

private final class BrittleConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    private let pollsLeft: Mutex<Int>

    init(_ inner: any BusConsumer, polls: Int) {
        self.inner = inner
        pollsLeft = Mutex(polls)
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        let isCut = pollsLeft.withLock { left in
            left -= 1
            return left < 0
        }
        if isCut { return ConsumerBatch(events: [.disconnected(reason: "the link is cut")]) }
        return try inner.poll(maxCount: min(maxCount, 2), timeout: timeout)
    }
}
