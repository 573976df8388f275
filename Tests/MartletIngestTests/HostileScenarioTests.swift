import MartletCore
import MartletIngest
import MartletReplica
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// What records, devices and other nodes do to each other at the worst time.
@Suite(.timeLimit(.minutes(5))) struct HostileScenarioTests {
    private let key = #"{"id":1}"#

    private func row(_ name: String, _ price: Double) -> String {
        #"{"id":1,"name":"\#(name)","price":\#(price),"stock":0}"#
    }

    private func rows(_ node: TestNode) throws -> [String] { try node.rows("SELECT name, price FROM product") }

    /// A node of its own, and a topic.
    private func lab(
        _ schema: String = IngestLab.schema, identity: String = "id"
    ) throws -> (IngestLab, TestNode, SourceTopic) {
        let lab = try IngestLab(schema)
        return (lab, try lab.node("a", identities: ["product": [identity]]), lab.topic())
    }

    // MARK: Records that are missing

    /// The record that set the price to 2 was compacted away while the node was offline.
    @Test func anUpdateBringsWhatMissingRecordsChanged() throws {
        let (lab, node, source) = try lab()
        try source.send("c", key: key, after: row("Nail", 1))
        try lab.ingest(node)
        try source.send("u", key: key, before: row("Nail", 2), after: row("Bolt", 2))
        try lab.ingest(node)
        #expect(try rows(node) == ["Bolt|2.0"])
    }

    /// The record before it, in which the source inserted the row, is gone from the topic: a node that does not know
    /// the row would insert it as a whole.
    @Test func aNodeThatHasNotReadWhatOthersPublishedIngestsNothing() throws {
        let (lab, a, source) = try lab()
        let b = try lab.node("b")
        try source.send("c", key: key, after: row("Nail", 1))
        try lab.ingest(a)
        try exchange([a, b])
        try b.write("UPDATE product SET name = 'Mine'")
        try exchange([a, b])
        try source.send("u", key: key, before: row("Nail", 1), after: row("Nail", 2))
        try lab.ingest(a)
        try exchange([a, b])
        source.bus.truncate(partition: 0, upTo: 1)
        let c = try lab.node("c")
        let hasCaughtUp = Atomic(false)
        let ingester = try lab.ingester(c) { hasCaughtUp.load(ordering: .relaxed) }
        #expect(try ingester.step(timeout: .zero) == .idle)
        #expect(try rows(c) == [])
        try exchange([a, b, c])
        hasCaughtUp.store(true, ordering: .relaxed)
        _ = try ingester.runUntilCaughtUp()
        try exchange([a, b, c])
        for node in [a, b, c] { #expect(try rows(node) == ["Mine|2.0"]) }
    }

    /// A machine that slept, or had no connection, has the topics of the source and of the nodes back at the same time.
    @Test func aNodeThatWasAwayReadsWhatOthersPublishedBeforeItIngestsAgain() throws {
        let (lab, a, source) = try lab()
        let (b, c) = (try lab.node("b"), try lab.node("c"))
        let hasCaughtUp = Atomic(true)
        let ingester = try lab.ingester(c) { hasCaughtUp.load(ordering: .relaxed) }
        #expect(try ingester.runUntilCaughtUp() == 0)
        hasCaughtUp.store(false, ordering: .relaxed)
        try source.send("c", key: key, after: row("Nail", 1))
        try lab.ingest(a)
        try exchange([a, b])
        try b.write("UPDATE product SET name = 'Mine'")
        try exchange([a, b])
        try source.send("u", key: key, before: row("Nail", 1), after: row("Nail", 2))
        try lab.ingest(a)
        try exchange([a, b])
        source.bus.truncate(partition: 0, upTo: 1)
        #expect(try ingester.step(timeout: .zero) == .idle)
        #expect(try rows(c) == [])
        try exchange([a, b, c])
        hasCaughtUp.store(true, ordering: .relaxed)
        _ = try ingester.runUntilCaughtUp()
        try exchange([a, b, c])
        for node in [a, b, c] { #expect(try rows(node) == ["Mine|2.0"]) }
    }

    @Test func aRecreatedTopicIsReadFromItsBeginningEvenIfItIsLonger() throws {
        let (lab, node, source) = try lab()
        for id in 1...3 { try source.send("c", key: #"{"id":\#(id)}"#, after: #"{"id":\#(id)}"#) }
        try lab.ingest(node)
        source.bus.wipe()
        for id in 11...16 { try source.send("r", key: #"{"id":\#(id)}"#, after: #"{"id":\#(id)}"#) }
        try lab.ingest(node)
        #expect(try node.rows("SELECT count(*) FROM product") == ["9"])
    }

    // MARK: Collected tombstones

    private func collectTombstones(_ node: TestNode) throws {
        try node.engine.session.transaction { db, context in
            try context.collected.advance(db, to: HybridTime(milliseconds: SQLiteClock.milliseconds + 1000))
        }
    }

    @Test func anOldRecordOverrulesNoDevice() throws {
        let (lab, node, source) = try lab()
        try source.send("c", key: key, after: row("Nail", 1))
        try node.write("INSERT INTO product VALUES (1, 'Mine', 5, 0)")
        try collectTombstones(node)
        try lab.ingest(node)
        #expect(try rows(node) == ["Mine|5.0"])
    }

    @Test func anOldDeleteRemovesNoRowOfADevice() throws {
        let (lab, node, source) = try lab()
        try source.sendDelete(key: key)
        try node.write("INSERT INTO product VALUES (1, 'Mine', 5, 0)")
        try collectTombstones(node)
        try lab.ingest(node)
        #expect(try rows(node) == ["Mine|5.0"])
    }

    // MARK: Times

    private func record(_ operation: String, _ after: String, at milliseconds: Int64) -> String {
        RecordText.envelope(
            operation, after: after, source: #"{"connector":"sqlserver","ts_ms":\#(milliseconds)}"#)
    }

    @Test func withoutAPositionRecordsOfOneMillisecondFollowTheirOffsets() throws {
        let bounds = SourceClock.Bounds(collected: .zero, limit: 1_000_000)
        var clock = SourceClock()
        let first = try clock.time(of: 5000, offset: 0xffff, position: nil, within: bounds).stamp
        let second = try clock.time(of: 5000, offset: 0x10000, position: nil, within: bounds).stamp
        #expect(second > first)
    }

    @Test func withoutAPositionTheLastRecordCountsWhateverTheSourcesClock() throws {
        let (lab, node, source) = try lab()
        let now = SQLiteClock.milliseconds
        try source.send(key, record("c", row("old", 1), at: now))
        try source.send(key, record("u", row("new", 2), at: now - 2000))
        try lab.ingest(node)
        #expect(try rows(node) == ["new|2.0"])
    }

    /// Compaction has removed the delete before it. The connector was late.
    @Test func anInsertAfterALoneNullRecordCounts() throws {
        let (lab, node, source) = try lab()
        try source.send(key, nil)
        try source.send(key, record("c", row("new", 2), at: SQLiteClock.milliseconds - 5000))
        try lab.ingest(node)
        #expect(try rows(node) == ["new|2.0"])
    }

    @Test func aLoneNullRecordDoesNotMoveTheTimesOfThoseAfterIt() throws {
        let (lab, node, source) = try lab()
        let before = SQLiteClock.milliseconds - 5000
        try source.send("c", key: key, after: row("x", 1), at: before - 1000)
        try lab.ingest(node)
        try node.write("UPDATE product SET price = 9")
        SQLiteClock.advance()
        try source.send(#"{"id":2}"#, nil)
        try source.send("u", key: key, before: row("x", 1), after: row("x", 2), at: before)
        try lab.ingest(node)
        #expect(try rows(node) == ["x|9.0"])
    }

    // MARK: Columns

    private func send(
        _ source: SourceTopic, key: String, _ after: String, _ fields: KeyValuePairs<String, String>
    ) throws {
        let schema = RecordText.envelopeSchema(fields)
        try source.send(key, RecordText.withSchema(schema, RecordText.envelope("c", after: after)))
    }

    @Test func textDoesNotBecomeAnotherNumber() throws {
        let (lab, node, source) = try lab()
        try send(
            source, key: key, #"{"id":1,"stock":"007"}"#, ["id": #""type":"int32""#, "stock": #""type":"string""#])
        try lab.ingest(node)
        #expect(try node.rows("SELECT id, stock FROM product") != ["1|7"])
    }

    @Test func anIntegerIsNotRounded() throws {
        let (lab, node, source) = try lab()
        try send(
            source, key: key, #"{"id":1,"price":9007199254740993}"#,
            ["id": #""type":"int32""#, "price": #""type":"int64""#])
        try lab.ingest(node)
        #expect(try node.rows("SELECT id, printf('%d', price) FROM product") != ["1|9007199254740992"])
    }

    /// Each node numbers rows by itself.
    @Test func theSourcesNumbersOfRowsThatHaveAnotherIdentityAreLeftOut() throws {
        let (lab, node, source) = try lab(
            "CREATE TABLE product(id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, name TEXT)", identity: "sku")
        try send(
            source, key: #"{"sku":"a"}"#, #"{"id":7,"sku":"a","name":"x"}"#,
            ["id": #""type":"int32""#, "sku": #""type":"string""#, "name": #""type":"string""#])
        try lab.ingest(node)
        #expect(try node.rows("SELECT sku, name FROM product") == ["a|x"])
    }

    @Test func aGeneratedColumnIsLeftOut() throws {
        let (lab, node, source) = try lab(
            "CREATE TABLE product(id INTEGER PRIMARY KEY, price REAL, gross REAL AS (price * 2))")
        try send(
            source, key: key, #"{"id":1,"price":1.5,"gross":3}"#,
            ["id": #""type":"int32""#, "price": #""type":"double""#, "gross": #""type":"double""#])
        try lab.ingest(node)
        #expect(try node.rows("SELECT id, price FROM product") == ["1|1.5"])
    }

    // MARK: Conflicts

    @Test func recordsOfOneSourceAreNoConflicts() throws {
        let (lab, node, source) = try lab()
        try source.send("c", key: key, after: row("Nail", 1))
        try lab.ingest(node)
        for price in 2...5 { try source.send("u", key: key, after: row("Nail", Double(price))) }
        try source.sendDelete(key: key)
        try lab.ingest(node)
        #expect(try node.store.conflicts().isEmpty)
    }
}
