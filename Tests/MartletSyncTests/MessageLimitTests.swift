import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Topics that accept less at once than a node would send.
@Suite struct MessageLimitTests {
    /// An agent does the same: it continues after each failure.
    private func publish(_ node: TestNode) throws {
        try runUntilNothingMoves("publishing") {
            let moved = node.publisher.step()
            if moved || node.publisher.currentProgress.inFlightBytes > 0 { return true }
            return try SyncStatus.read(node.store).unpublished > 0
        }
    }

    /// A backlog of small transactions, which fill batches, and one transaction that is larger than any message may be.
    @Test(arguments: [true, false]) func aTopicWithALowLimitReceivesEverything(tellsLimit: Bool) throws {
        let lab = try Lab()
        let bus = LimitedBus(lab.bus, limit: 100_000, tellsLimit: tellsLimit)
        let (a, b) = (try lab.node("a", bus: bus), try lab.node("b"))
        for number in 1...500 { try a.write("INSERT INTO setting VALUES ('k\(number)', hex(randomblob(500)))") }
        try a.write("INSERT INTO setting VALUES ('large', randomblob(600000))")
        try publish(a)
        try b.consume()
        try expectAgreement([a, b])
        #expect(try b.rows("SELECT count(*) FROM setting") == ["501"])
        let largest = try lab.messages().map(\.payload.count).max() ?? 0
        #expect(largest <= 100_000 && largest > 20_000, "\(largest)")
        // One message is refused if the broker states its limit. Otherwise, each try has half the size of the one
        // before.
        #expect(bus.producerCount <= (tellsLimit ? 2 : 6), "\(bus.producerCount)")
        #expect(bus.questionCount == bus.producerCount - 1)
    }

    @Test func publishingAdaptsToALimitThatWasLowered() throws {
        let lab = try Lab()
        let bus = LimitedBus(lab.bus, limit: 1_000_000)
        let a = try lab.node("a", bus: bus)
        for limit in [1_000_000, 50_000, 20_000] {
            bus.limit = limit
            try a.write("INSERT OR REPLACE INTO setting VALUES ('k', randomblob(400000))")
            try publish(a)
        }
        #expect(bus.producerCount == 3)
        #expect(try lab.messages().last.map { $0.payload.count <= 20_000 } ?? false)
    }

    /// Nothing fails meanwhile, so that the producer stays.
    @Test func publishingAdaptsToALimitThatWasRaised() throws {
        let lab = try Lab()
        let clock = TestClock()
        let bus = LimitedBus(lab.bus, limit: 20_000)
        let a = try lab.node("a", bus: bus, clock: clock)
        try a.write("INSERT INTO setting VALUES ('k', randomblob(400000))")
        try publish(a)
        let before = bus.producerCount
        bus.limit = 1_000_000
        clock.pass(.seconds(601))
        try a.write("INSERT OR REPLACE INTO setting VALUES ('k', randomblob(400000))")
        try publish(a)
        #expect(try lab.messages().last.map { $0.payload.count > 400_000 } ?? false)
        #expect(bus.producerCount == before)
    }

    @Test func aSnapshotIsMadeAgainInPartsThatFit() throws {
        let lab = try Lab()
        let bus = LimitedBus(InMemoryBus(topic: SnapshotTopic.name(of: "t")), limit: 50_000)
        let a = try lab.node("a")
        for number in 1...40 { try a.write("INSERT INTO setting VALUES ('k\(number)', randomblob(5000))") }
        try publish(a)
        try a.consume()
        let snapshots = SnapshotTopic(engine: a.engine, bus: bus, topic: lab.bus.topic)
        let error = #expect(throws: BusError.self) { try snapshots.make() }
        #expect(error?.code == .messageTooLarge)
        #expect(try snapshots.make().messageCount > 4)
    }

    @Test func theLimitIsReadAgainWhileItReducesMessages() {
        let clock = Mutex(ContinuousClock.now)
        let bus = LimitedBus(InMemoryBus(), limit: 50_000)
        let limit = MessageLimit(bus, configured: 900_000) { clock.withLock { $0 } }
        limit.refresh()
        #expect(limit.messageBytes == 900_000 && limit.batchBytes == nil && bus.questionCount == 0)
        limit.noteRefused()
        #expect(limit.messageBytes == 50_000 - 4096 && limit.batchBytes == 50_000)
        bus.limit = 200_000
        limit.refresh()
        #expect(limit.batchBytes == 50_000, "it was asked just now")
        clock.withLock { $0 += .seconds(601) }
        limit.refresh()
        #expect(limit.messageBytes == 200_000 - 4096 && limit.batchBytes == 200_000)
        clock.withLock { $0 += .seconds(601) }
        bus.limit = 1_048_588
        limit.refresh()
        #expect(limit.messageBytes == 900_000 && limit.batchBytes == nil)
    }

    /// Otherwise, large messages would be refused again every ten minutes.
    @Test func aLimitThatDidNotHelpIsNotTriedAgain() {
        let clock = Mutex(ContinuousClock.now)
        let bus = LimitedBus(InMemoryBus(), limit: 500_000)
        let limit = MessageLimit(bus, configured: 900_000) { clock.withLock { $0 } }
        limit.noteRefused()
        limit.noteRefused()
        let reduced = limit.messageBytes
        #expect(reduced < 300_000)
        clock.withLock { $0 += .seconds(601) }
        limit.refresh()
        #expect(limit.messageBytes == reduced)
        clock.withLock { $0 += .seconds(601) }
        bus.limit = 600_000
        limit.refresh()
        #expect(limit.messageBytes == 600_000 - 4096)
    }

    /// The message is refused although it should fit, or nobody states the limit.
    @Test func halfTheSizeIsTriedIfTheLimitDoesNotHelp() {
        let bus = LimitedBus(InMemoryBus(), limit: 50_000)
        let limit = MessageLimit(bus, configured: 900_000)
        limit.noteRefused()
        limit.noteRefused()
        #expect(limit.messageBytes == (50_000 - 4096) / 2)
        for _ in 1...20 { limit.noteRefused() }
        #expect(limit.messageBytes == 1000)
    }
}
