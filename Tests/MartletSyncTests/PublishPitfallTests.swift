import MartletSync
import MartletTestSupport
import Testing

@Suite struct PublishPitfallTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    private func write(_ node: TestNode, _ range: ClosedRange<Int>) throws {
        for number in range { try node.write("INSERT INTO setting VALUES ('k\(number)', \(number))") }
    }

    /// Publishes until the broker has acknowledged that many transactions, whatever failed on the way.
    private func publish(_ node: TestNode, acknowledged count: Int64) throws {
        try runUntilNothingMoves("publishing") {
            node.publisher.step()
            return node.publisher.currentProgress.acknowledged < count
        }
    }

    private func sequences() throws -> [Int] {
        try lab.messages().map { Int(String(decoding: $0.header("martlet-sequence") ?? [], as: UTF8.self)) ?? -1 }
    }

    @Test func p01UndeliveredTransactionsAreNotMarkedAsSent() throws {
        let bus = FaultyBus(lab.bus, faults: [.init(stored: 0, acknowledged: 0, lost: 3)])
        let a = try lab.node("a", bus: bus)
        try write(a, 1...3)
        a.publisher.step()
        #expect(try lab.messages().isEmpty)
        #expect(try a.engine.acknowledged() == 0)
        try write(a, 4...4)
        try publish(a, acknowledged: 4)
        #expect(try sequences() == [1, 2, 3, 4])
        #expect(try a.engine.acknowledged() == 4)
    }

    @Test func p02ATransientErrorDropsNothing() throws {
        let a = try lab.node("a", bus: FaultyBus(lab.bus, refusals: 2))
        try write(a, 1...2)
        #expect(!a.publisher.step())
        #expect(a.publisher.currentProgress.problem != nil)
        #expect(!a.publisher.step())
        try a.publish()
        #expect(try sequences() == [1, 2])
    }

    @Test func p03EachMessageHasTheValuesOfItsOwnTime() throws {
        let a = try lab.node("a") { $0.encoding = .json }
        try a.write("INSERT INTO setting VALUES ('k', 'first')")
        try a.write("UPDATE setting SET value = 'second'")
        try a.foreignWrite("UPDATE setting SET value = 'third'")
        try a.publish()
        let payloads = try lab.messages().map { String(decoding: $0.payload, as: UTF8.self) }
        #expect(payloads.count == 3)
        for (payload, word) in zip(payloads, ["first", "second", "third"]) {
            #expect(["first", "second", "third"].filter(payload.contains) == [word])
        }
    }

    /// Each part of a long backlog is sent while the next one is enqueued.
    @Test func oneStepSendsAllPartsOfALongBacklog() throws {
        let a = try lab.node("a") { $0.enqueueLimits.transactions = 150 }
        try write(a, 1...700)
        a.publisher.step()
        #expect(try sequences() == Array(1...700))
    }

    @Test(arguments: [(0, 0, 0), (200, 100, 150), (449, 449, 1), (600, 10, 0)])
    func aProducerThatDiesInALongBacklogLosesNothing(stored: Int, acknowledged: Int, lost: Int) throws {
        let fault = FaultyBus.Fault(stored: stored, acknowledged: acknowledged, lost: lost)
        let bus = FaultyBus(lab.bus, faults: [fault, fault], refusals: 1)
        let a = try lab.node("a", bus: bus) { $0.enqueueLimits.transactions = 150 }
        try write(a, 1...700)
        try publish(a, acknowledged: 700)
        let found = try sequences()
        #expect(Set(found) == Set(1...700))
        var highest = 0
        for sequence in found {
            #expect(sequence <= highest + 1)
            highest = max(highest, sequence)
        }
        let b = try lab.node("b")
        #expect(try b.consume().applied == 700)
    }

    @Test(arguments: [(0, 0, 0), (5, 0, 3), (5, 2, 0), (7, 7, 4), (1, 1, 0)])
    func p06AProducerThatDiesMidwayLosesAndReordersNothing(stored: Int, acknowledged: Int, lost: Int) throws {
        let fault = FaultyBus.Fault(stored: stored, acknowledged: acknowledged, lost: lost)
        let a = try lab.node("a", bus: FaultyBus(lab.bus, faults: [fault, fault]))
        let b = try lab.node("b")
        try write(a, 1...20)
        try publish(a, acknowledged: 20)
        // Each producer continues right after the acknowledged messages, in order.
        var highest = 0
        for sequence in try sequences() {
            #expect(sequence <= highest + 1)
            highest = max(highest, sequence)
        }
        #expect(highest == 20)
        let report = try b.consume()
        #expect(report.gaps.isEmpty && report.applied == 20)
        #expect(try b.rows("SELECT count(*) FROM setting") == ["20"])
    }

    @Test func aCrashBetweenAcknowledgementAndCursorResendsAndAppliesOnce() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try write(a, 1...3)
        a.publisher.step()
        try a.restart()
        try a.publish()
        #expect(try sequences() == [1, 2, 3, 1, 2, 3])
        let report = try b.consume()
        #expect(report.applied == 3 && report.duplicates == 3)
    }

    @Test func aTransactionLargerThanTheProducersQueueIsSent() throws {
        let a = try lab.node("a", bus: SmallQueueBus(inner: lab.bus, limit: 2)) { $0.maxMessageBytes = 1000 }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('large', hex(zeroblob(20000)))")
        try write(a, 1...5)
        try publish(a, acknowledged: 6)
        try b.consume()
        #expect(try b.rows("SELECT count(*), max(length(value)) FROM setting") == ["6|40000"])
    }
}
