import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Messages in the quarantine are retried, and only a person discards them.
@Suite struct QuarantineTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab()
        a = try lab.node("a") { $0.encoding = .json }
        b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        try a.write("INSERT INTO setting VALUES ('m', 3)")
        try a.publish()
    }

    /// A message in a format that this program doesn't know.
    private func newer(_ message: IncomingMessage) -> IncomingMessage {
        message.replacing("\"format\":1", with: "\"format\":2")
    }

    /// Imitates an update of this program to one that knows the newer format.
    private func upgradeFormat(_ node: TestNode, only id: Int64? = nil) throws {
        try node.changeQuarantined(id) {
            Array(String(decoding: $0, as: UTF8.self).replacing(#""format":2"#, with: #""format":1"#).utf8)
        }
    }

    private func gaps(_ node: TestNode) throws -> [String] {
        try node.gaps().sorted { $0.lowerBound < $1.lowerBound }.map { "\($0.lowerBound)|\($0.upperBound)" }
    }

    @Test func p167AProbeOfTheWriteRightIsIgnored() throws {
        let producer = try lab.bus.makeProducer { _ in }
        defer { producer.close() }
        try producer.send(.probe)
        try a.write("INSERT INTO setting VALUES ('n', 4)")
        try a.publish()
        let report = try b.consume()
        #expect(report.applied == 4 && report.quarantined == 0)
        #expect(try b.keys() == ["k", "l", "m", "n"])
    }

    private func expected(applied: Int = 0, parked: Int = 0, superseded: Int = 0, kept: Int = 0)
        -> QuarantineRetryReport
    {
        var report = QuarantineRetryReport()
        report.applied = applied
        report.parked = parked
        report.superseded = superseded
        report.kept = kept
        return report
    }

    @Test func aRetryAppliesDecodableMessagesAndClosesTheirGaps() throws {
        let messages = try lab.messages()
        try b.receive([newer(messages[0]), newer(messages[1]), messages[2]])
        #expect(try gaps(b) == ["1|1", "2|2"])
        try upgradeFormat(b, only: 2)
        #expect(try b.engine.retryQuarantined() == expected(applied: 1, kept: 1))
        #expect(try b.keys() == ["l", "m"])
        #expect(try gaps(b) == ["1|1"])
        try b.restart()
        try upgradeFormat(b)
        #expect(try b.engine.retryQuarantined() == expected(applied: 1))
        #expect(try b.keys() == ["k", "l", "m"])
        #expect(try gaps(b) == [])
        #expect(try b.store.quarantined() == [])
        #expect(try b.receive(messages).duplicates == 3)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try b.engine.retryQuarantined() == QuarantineRetryReport())
    }

    @Test func binaryMessagesAreRetriedToo() throws {
        let c = try lab.node("c")
        try c.write("INSERT INTO setting VALUES ('binary', 1)")
        try c.publish()
        let message = try lab.messages()[3]
        var broken = message
        broken.payload.removeLast()
        #expect(try b.receive([broken]).quarantined == 1)
        #expect(try b.engine.retryQuarantined() == expected(kept: 1))
        try b.changeQuarantined { _ in message.payload }
        #expect(try b.engine.retryQuarantined() == expected(applied: 1))
        #expect(try b.keys() == ["binary"])
    }

    @Test func aMessageThatStillCannotBeDecodedKeepsItsNumberAndAge() throws {
        let messages = try lab.messages()
        var garbage = messages[1]
        garbage.payload = [1, 2, 3]
        try b.receive([newer(messages[0]), garbage])
        try b.write("UPDATE _martlet_quarantine SET since = id * 1000, reason = 'of old'")
        #expect(try b.engine.retryQuarantined() == expected(kept: 2))
        #expect(try b.store.quarantined().map(\.id) == [1, 2])
        #expect(try b.store.quarantined().map(\.since) == [Date(milliseconds: 1000), Date(milliseconds: 2000)])
        #expect(try b.store.quarantined()[0].reason.contains("format 2"))
        #expect(try gaps(b) == ["1|1", "2|2"])
    }

    @Test func aMessageWithBadHeadersStays() throws {
        var message = try lab.messages()[0]
        message.headers = message.headers.filter { $0.name != "martlet-sequence" }
        var bare = message
        bare.headers = []
        try b.receive([message, bare])
        #expect(try b.engine.retryQuarantined() == expected(kept: 2))
        #expect(try b.keys() == [])
    }

    @Test func aTransactionThatArrivedMeanwhileIsJustRemoved() throws {
        let messages = try lab.messages()
        try b.receive([newer(messages[0]), messages[0], newer(messages[1]), newer(messages[1])])
        try upgradeFormat(b)
        #expect(try b.engine.retryQuarantined() == expected(applied: 1, superseded: 2))
        #expect(try b.keys() == ["k", "l"])
        #expect(try b.store.quarantined() == [])
    }

    @Test func aSingleMessageIsRetriedAlone() throws {
        let messages = try lab.messages()
        try b.receive([newer(messages[0]), newer(messages[1])])
        try upgradeFormat(b)
        #expect(try b.engine.retryQuarantined(2) == expected(applied: 1))
        #expect(try b.keys() == ["l"])
        #expect(try b.store.quarantined().map(\.id) == [1])
        let error = #expect(throws: StoreError.self) { try b.engine.retryQuarantined(7) }
        #expect(error?.code == .invalidArgument)
    }

    @Test func chunksAreRetriedAsTheTransactionTheyForm() throws {
        let lab = try Lab()
        let a = try lab.node("a") {
            $0.encoding = .json
            $0.maxMessageBytes = 1000
        }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('large', hex(zeroblob(2500)))")
        try a.publish()
        var messages = try lab.messages()
        #expect(messages.count > 3)
        messages[0] = newer(messages[0])
        #expect(try b.receive(messages).quarantined == 1)
        try upgradeFormat(b)
        #expect(try b.engine.retryQuarantined() == expected(applied: 1))
        #expect(try b.rows("SELECT length(value) FROM setting") == ["5000"])
        #expect(try gaps(b) == [])
    }

    @Test func theRestOfAPendingTransactionIsAppliedUnderItsClosedSequence() throws {
        let message = try lab.messages()[0]
            .replacing("\"entity\":\"setting\"", with: "\"entity\":\"later\"")
            .replacing("CHANGE_KIND_INSERT", with: "CHANGE_KIND_UNSPECIFIED")
        try b.receive([message])
        try b.write("CREATE TABLE later(key TEXT PRIMARY KEY NOT NULL, value)")
        _ = try b.store.attach()
        b.publisher.step()
        #expect(try b.store.quarantined().count == 1)
        #expect(try b.engine.retryQuarantined() == expected(kept: 1))
        let whole = try lab.messages()[0].replacing("\"entity\":\"setting\"", with: "\"entity\":\"later\"")
        try b.changeQuarantined { _ in whole.payload }
        #expect(try b.engine.retryQuarantined() == expected(applied: 1))
        #expect(try b.rows("SELECT key FROM later") == ["k"])
        #expect(try b.store.quarantined() == [])
    }

    @Test func aDecodableTransactionFromTheFutureBecomesPending() throws {
        let clock = TestClock(SQLiteClock.milliseconds - 3_600_000)
        let c = try lab.node("c", clock: clock)
        try c.receive([newer(try lab.messages()[0])])
        try upgradeFormat(c)
        #expect(try c.engine.retryQuarantined() == expected(parked: 1))
        #expect(try c.store.parked().map(\.reason) == [.futureClock])
        #expect(try gaps(c) == [])
        clock.milliseconds += 3_600_000
        #expect(try c.engine.releaseDeferred() == 1)
        #expect(try c.keys() == ["k"])
    }

    @Test func aFailedRetryLeavesEverythingAsItWas() throws {
        let messages = try lab.messages()
        try b.receive(messages.map(newer))
        try upgradeFormat(b, only: 1)
        try b.write(
            "UPDATE _martlet_quarantine SET reason = id; CREATE UNIQUE INDEX refuses ON _martlet_quarantine(reason)")
        #expect(throws: StoreError.self) { try b.engine.retryQuarantined() }
        #expect(try b.keys() == [])
        #expect(try b.store.quarantined().map(\.reason) == ["1", "2", "3"])
        #expect(try gaps(b) == ["1|1", "2|2", "3|3"])
        try b.write("DROP INDEX refuses")
        #expect(try b.engine.retryQuarantined() == expected(applied: 1, kept: 2))
        #expect(try b.keys() == ["k"])
    }

    // MARK: Discarding

    @Test func discardingAMessageClosesItsGap() throws {
        let messages = try lab.messages()
        try b.receive([newer(messages[0]), newer(messages[1]), messages[2]])
        let discarded = try b.store.discardQuarantined(1)
        #expect(discarded?.origin == a.engine.node && discarded?.sequence == 1 && discarded?.closedGap == true)
        #expect(try b.store.quarantined().map(\.id) == [2])
        #expect(try SyncStatus.read(b.store).origins[0].gaps == [2...2])
        #expect(try b.receive([messages[0]]).duplicates == 1)
        #expect(try b.keys() == ["m"])
        #expect(try b.receive([messages[1]]).applied == 1)
        #expect(try b.store.discardQuarantined(1) == nil)
    }

    @Test func aGapStaysUntilTheLastCopyOfItsTransactionIsDiscarded() throws {
        let messages = try lab.messages()
        try b.receive([newer(messages[0]), newer(messages[0])])
        #expect(try b.store.discardQuarantined(1)?.closedGap == false)
        #expect(try gaps(b) == ["1|1"])
        try upgradeFormat(b)
        #expect(try b.engine.retryQuarantined() == expected(applied: 1))
        #expect(try b.keys() == ["k"])
    }

    @Test func discardingAMessageWithoutATransactionClosesNoGap() throws {
        let messages = try lab.messages()
        var withoutOrigin = messages[0]
        withoutOrigin.headers = withoutOrigin.headers.filter { $0.name != "martlet-origin" }
        try b.receive([withoutOrigin, messages[1]])
        #expect(try gaps(b) == ["1|1"])
        #expect(try b.store.discardQuarantined(1) == DiscardedMessage())
        #expect(try gaps(b) == ["1|1"])
    }

    @Test func discardingAMessageDeletesTheChunksOfItsTransaction() throws {
        let lab = try Lab()
        let a = try lab.node("a") { $0.maxMessageBytes = 1000 }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('large', hex(zeroblob(2500)))")
        try a.publish()
        let messages = try lab.messages()
        var garbage = messages[0]
        garbage.headers = garbage.headers.filter { $0.name != "martlet-chunk" }
        try b.receive([messages[0], garbage])
        #expect(try b.chunks().count == 1)
        #expect(try b.store.discardQuarantined(1)?.closedGap == true)
        #expect(try b.chunks() == [])
    }
}
