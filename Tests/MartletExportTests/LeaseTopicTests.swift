import Foundation
import MartletExport
import MartletSync
import MartletTestSupport
import Testing

/// The lease on a topic in memory.
@Suite(.timeLimit(.minutes(5))) struct LeaseTopicTests {
    private let clock = TestClock()

    /// - Parameter waits: measures how long the topic takes.
    private func lease(_ node: UInt8, _ bus: any Bus, waits: TestClock = TestClock()) -> LeaseTopic {
        let lease = ExportLease(
            node: NodeID(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, node))), name: "n\(node)",
            timeout: .seconds(12))
        return LeaseTopic(
            lease, bus, now: { [clock] in clock.instant }, waitingClock: { waits.instant }, isStopped: { false })
    }

    /// The broker keeps the renewals of days, and the link is slow.
    @Test func aTopicWithManyRecordsIsReadToItsEnd() throws {
        let bus = InMemoryBus(topic: "x.export")
        let a = lease(1, bus)
        for _ in 1...20 {
            #expect(try a.hold())
            clock.pass(.seconds(4))
        }
        let waits = TestClock()
        let b = lease(2, SlowBus(inner: bus, waits: waits), waits: waits)
        #expect(try !b.hold())
        #expect(b.lease.holder?.record.beat == 20)
    }

    @Test func ofTheRenewalsOfAWeekOnlyTheNewestAreRead() throws {
        let bus = InMemoryBus(topic: "x.export")
        let holder = lease(1, bus).lease
        try BusSession.send(
            (1...Int64(3000)).map { (beat: Int64) -> OutgoingMessage in
                let record = LeaseRecord(
                    term: 7, since: 3, node: holder.node, name: holder.name, instance: holder.instance, beat: beat,
                    isClaim: false)
                return OutgoingMessage(
                    key: Array("lease".utf8), headers: [], payload: Array(try JSONEncoder().encode(record)),
                    tag: UInt64(beat))
            }, to: bus)
        let waits = TestClock()
        let before = waits.instant
        let b = lease(2, SlowBus(inner: bus, waits: waits), waits: waits)
        #expect(try !b.hold())
        #expect(b.lease.holder?.record.beat == 3000 && b.lease.holder?.record.since == 3)
        // Each message takes a second of this clock.
        #expect(waits.instant - before < .seconds(2000))
    }

    @Test func theReasonWhyTheBrokerTakesNoRecordIsTold() throws {
        let a = lease(1, RefusingBus(inner: InMemoryBus(topic: "x.export")))
        let error = #expect(throws: BusError.self) { try a.hold() }
        #expect(error?.code == .unauthorized)
        #expect(error?.message == "topic x.export: no right to write")
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

/// A bus that takes a second for each message.
private struct SlowBus: ForwardingBus {
    let inner: InMemoryBus
    let waits: TestClock

    func makeConsumer() throws(BusError) -> any BusConsumer { SlowConsumer(try inner.makeConsumer(), waits) }
}

private final class SlowConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    private let waits: TestClock

    init(_ inner: any BusConsumer, _ waits: TestClock) {
        self.inner = inner
        self.waits = waits
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        waits.pass(.seconds(1))
        return try inner.poll(maxCount: min(maxCount, 1), timeout: timeout)
    }
}

/// A bus whose topic nobody may write to.
private struct RefusingBus: ForwardingBus {
    let inner: InMemoryBus

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        RefusingProducer(acknowledge)
    }
}

private final class RefusingProducer: BusProducer {
    private let acknowledge: @Sendable (Acknowledgement) -> Void

    init(_ acknowledge: @escaping @Sendable (Acknowledgement) -> Void) { self.acknowledge = acknowledge }

    func send(_ message: OutgoingMessage) throws(BusError) {
        let error = BusError(.unauthorized, "no right to write")
        acknowledge(Acknowledgement(tag: message.tag, result: .failure(error)))
    }

    func flush(timeout: Duration) -> Bool { true }
    func close() {}
}
