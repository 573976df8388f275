import Foundation
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// The keys of a snapshot's messages: whose messages it replaces.
@Suite struct SnapshotKeyTests {
    /// The newest snapshot may be the only one that covers what the topic still has.
    @Test func aSnapshotWhoseLeftoversCouldNotBeErasedIsNotReplacedByTheNext() throws {
        let lab = try SnapshotLab(partitions: 1)
        let bus = KeepingBus(lab.snapshots)
        let a = try lab.node("a", snapshots: bus)
        for number in 1...9 { try a.write("INSERT INTO setting VALUES ('\(number)', \(number))") }
        let first = try a.makeSnapshot()
        try a.write("DELETE FROM setting")
        let second = try a.makeSnapshot()
        // The third snapshot needs fewer of the keys of the first.
        try a.loseTombstones()
        bus.refusesErasers.withLock { $0 = true }
        #expect(throws: BusError.self) { try a.makeSnapshot() }
        let third = try #require(try a.snapshots?.list().first { ![first.id, second.id].contains($0.id) })
        #expect(third.isComplete)
        bus.refusesErasers.withLock { $0 = false }
        let fourth = try a.makeSnapshot()
        #expect(try keys(lab, of: third).isDisjoint(with: keys(lab, of: fourth)))
        // The one after that erases what was left over.
        let fifth = try a.makeSnapshot()
        let known = try keys(lab, of: third).union(keys(lab, of: fourth)).union(keys(lab, of: fifth))
        var newest: [[UInt8]: IncomingMessage] = [:]
        for message in try messages(lab.snapshots) { newest[message.key] = message }
        let others = newest.filter { !known.contains($0.key) }
        #expect(!others.isEmpty && others.values.allSatisfy(\.payload.isEmpty))
    }

    private func keys(_ lab: SnapshotLab, of snapshot: SnapshotInfo) throws -> Set<[UInt8]> {
        Set(try messages(lab.snapshots).filter { $0.text("martlet-snapshot") == snapshot.id.uuidString }.map(\.key))
    }
}

/// A bus that refuses empty messages if told so.
private final class KeepingBus: ForwardingBus {
    let inner: InMemoryBus
    let refusesErasers = Mutex(false)

    init(_ inner: InMemoryBus) { self.inner = inner }

    func makeProducer(acknowledge: @escaping @Sendable (Acknowledgement) -> Void) throws(BusError) -> any BusProducer {
        KeepingProducer(self, try inner.makeProducer(acknowledge: acknowledge))
    }
}

private final class KeepingProducer: BusProducer {
    private let bus: KeepingBus
    private let inner: any BusProducer

    init(_ bus: KeepingBus, _ inner: any BusProducer) {
        self.bus = bus
        self.inner = inner
    }

    func send(_ message: OutgoingMessage) throws(BusError) {
        if message.payload.isEmpty, bus.refusesErasers.withLock(\.self) {
            throw BusError(.unreachable, "the broker is gone", isRetriable: true)
        }
        try inner.send(message)
    }

    func flush(timeout: Duration) -> Bool { inner.flush(timeout: timeout) }
    func close() { inner.close() }
}
