import Foundation
import MartletExport
import MartletSync
import MartletTestSupport
import Testing

/// The lease on a topic in memory.
@Suite(.timeLimit(.minutes(5))) struct LeaseTopicTests {
    private let clock = TestClock()

    private func lease(_ node: UInt8, _ bus: any Bus) -> LeaseTopic {
        let lease = ExportLease(
            node: NodeID(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, node))), name: "n\(node)",
            timeout: .seconds(12))
        return LeaseTopic(lease, bus, now: { [clock] in clock.instant }, isStopped: { false })
    }

    @Test func aNodeThatWakesUpReadsWhatItMissedBeforeItClaimsTheLease() throws {
        let bus = InMemoryBus(topic: "x.export")
        let (a, b) = (lease(1, bus), lease(2, DistantBus(inner: bus)))
        #expect(try a.hold())
        #expect(try !b.hold())
        // The machine of b sleeps, and a renews the lease meanwhile.
        for _ in 1...5 {
            clock.pass(.seconds(4))
            #expect(try a.hold())
        }
        #expect(try !b.hold())
        #expect(b.lease.holder?.record.node == a.lease.node)
        #expect(try a.hold() && a.lease.holder?.record.term == 1)
    }
}

/// A bus whose messages need more than a moment to come.
private struct DistantBus: ForwardingBus {
    let inner: InMemoryBus

    func makeConsumer() throws(BusError) -> any BusConsumer { DistantConsumer(try inner.makeConsumer()) }
}

private final class DistantConsumer: ForwardingConsumer {
    let inner: any BusConsumer

    init(_ inner: any BusConsumer) { self.inner = inner }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        guard timeout > .milliseconds(10) else { return ConsumerBatch() }
        return try inner.poll(maxCount: maxCount, timeout: timeout)
    }
}
