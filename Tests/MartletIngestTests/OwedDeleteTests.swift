import MartletBus
import MartletExport
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Another system ends with the rows of the nodes, although the history has no change of some deletes.
@Suite(.timeLimit(.minutes(5))) struct OwedDeleteTests {
    private let lab: IngestLab
    private let source: SourceTopic

    init() throws {
        lab = try IngestLab()
        source = lab.topic()
    }

    private func row(_ name: String) -> String { #"{"id":1,"name":"\#(name)","stock":1}"# }

    private func send(_ operation: String, _ name: String, at time: Int64? = nil) throws {
        try source.send(operation, key: #"{"id":1}"#, after: row(name), at: time)
    }

    private func records() throws -> [String] {
        try lab.exported().map { "\($0.operation) \($0.row?["name"] as? String ?? "")" }
    }

    /// Three nodes. The source deletes a row and inserts it again, and then a device deletes it, which has not heard of
    /// that. The nodes have heard of all but the insert, and one of them has exported.
    ///
    /// - Returns: the time of the insert.
    private func prepare(_ nodes: [TestNode], exporting: Int = 0, ingested: Bool = true) throws -> Int64 {
        try send("c", "source")
        try lab.ingest(nodes[0])
        try exchange(nodes)
        _ = try lab.exporter(nodes[exporting], ingested: ingested).runUntilCaughtUp()
        try source.sendDelete(key: #"{"id":1}"#, before: row("source"))
        let insertedAgain = earlierTime()
        try nodes[1].write("DELETE FROM product")
        try lab.ingest(nodes[0])
        for node in nodes { try node.publish() }
        for _ in 0..<2 { for node in [nodes[0], nodes[2]] { try node.consume() } }
        _ = try lab.exporter(nodes[exporting], ingested: ingested).runUntilCaughtUp()
        return insertedAgain
    }

    /// Returns a time before all that is written from now on.
    private func earlierTime() -> Int64 {
        let time = SQLiteClock.milliseconds + 1
        SQLiteClock.advance()
        SQLiteClock.advance()
        return time
    }

    private func owed(_ node: TestNode) throws -> Int {
        try node.rows("SELECT key FROM _martlet_meta WHERE key LIKE 'owed/%'").count
    }

    @Test(arguments: [0, 2]) func aDeleteOfARowThatWasGoneIsExportedOnceTheSourceNeedsIt(exporting: Int) throws {
        let nodes = try ["a", "b", "c"].map { try lab.node($0) }
        let insertedAgain = try prepare(nodes, exporting: exporting)
        try send("c", "again", at: insertedAgain)
        try lab.ingest(nodes[0])
        try exchange(nodes)
        try lab.export(nodes[exporting])
        #expect(try nodes[exporting].rows("SELECT * FROM product") == [])
        #expect(try records() == ["r source", "d ", "d "])
        let deletes = try lab.exported().filter { $0.operation == "d" }
        #expect(deletes.map(\.author) == [TransactionAuthor.ingest, nil])
        #expect((deletes.last?.hlc ?? 0) >> 16 > insertedAgain)
        // It was owed once.
        #expect(try lab.export(nodes[exporting]) == 0)
        #expect(try owed(nodes[exporting]) == 0)
        #expect(try records().count == 3)
    }

    /// The tombstone may be collected while the broker can't be reached.
    @Test func itIsExportedAlthoughItsTombstoneIsGone() throws {
        let nodes = try ["a", "b", "c"].map { try lab.node($0) }
        try send("c", "again", at: try prepare(nodes))
        try lab.ingest(nodes[0])
        let deleted = try nodes[0].rows("SELECT hlc FROM _martlet_tombstones")
        try nodes[0].loseTombstones()
        try lab.export(nodes[0])
        #expect(try lab.exported().last.map { "\($0.operation) \($0.hlc ?? 0)" } == "d \(deleted[0])")
    }

    @Test func nothingIsOwedToAnExportThatLeavesOutWhatWasIngested() throws {
        let nodes = try ["a", "b", "c"].map { try lab.node($0) }
        try send("c", "again", at: try prepare(nodes, ingested: false))
        try lab.ingest(nodes[0])
        #expect(try owed(nodes[0]) == 0)
    }

    @Test func nothingIsOwedToAnExportWhoseCursorWasRemoved() throws {
        let nodes = try ["a", "b", "c"].map { try lab.node($0) }
        let insertedAgain = try prepare(nodes)
        try nodes[0].store.removeCursor("martlet.export.x")
        try send("c", "again", at: insertedAgain)
        try lab.ingest(nodes[0])
        #expect(try owed(nodes[0]) == 0)
    }

    /// A node that takes over does not know what the other one has told the source.
    @Test func aTakeoverExportsDeletesOfRowsThatTheTopicNeverHad() throws {
        let a = try lab.node("a")
        try send("c", "source")
        try lab.ingest(a)
        try a.write("DELETE FROM product")
        try lab.export(a)
        #expect(try records() == ["d "])
        try a.write("INSERT INTO product VALUES (1, 'again', 1, 1)")
        try lab.exporter(a, ingested: true).forgetPosition()
        try lab.export(a)
        #expect(try records() == ["d ", "r again"])
    }

    /// Its key is none that the source has, and a writer would wait for somebody to correct it.
    @Test func aDeleteUnderAnotherKeyIsNotOwed() throws {
        let entities = try lab.node("a").store.trackedEntities()
        let product = ExportTable(try #require(entities.first { $0.name == "product" }), topic: "x.product")
        #expect(product.hasKey(of: StableID(values: [.integer(1)])))
        #expect(!product.hasKey(of: StableID(values: [.integer(1), .integer(2)])))
        #expect(!product.hasKey(of: StableID(values: [.null])))
        let other = try lab.node("b", identities: [:]).store.trackedEntities()
        let hidden = ExportTable(try #require(other.first { $0.name == "product" }), topic: "x.product")
        #expect(!hidden.hasKey(of: StableID(values: [.blob(Array(repeating: 7, count: 16))])))
    }

    // MARK: Snapshots

    /// A node that ingests, one with devices, and one that exports. They have heard of a row of the source, and all but
    /// the second also that the source has deleted it.
    private func prepareForSnapshot() throws -> [TestNode] {
        let snapshots = InMemoryBus(topic: SnapshotTopic.name(of: "t"))
        let nodes = try ["a", "b", "c"].map { try lab.node($0, snapshots: snapshots) }
        try send("c", "source")
        try lab.ingest(nodes[0])
        try exchange(nodes)
        try lab.export(nodes[2])
        try source.sendDelete(key: #"{"id":1}"#, before: row("source"))
        try lab.ingest(nodes[0])
        try nodes[0].publish()
        try nodes[2].consume()
        try lab.export(nodes[2])
        return nodes
    }

    /// The exporter loads a snapshot of the first node instead of what the topic has had.
    private func load(_ nodes: [TestNode]) throws {
        _ = try #require(nodes[0].snapshots).make()
        let consumer = try lab.bus.makeConsumer()
        let end = try consumer.watermarks(partition: 0, timeout: .seconds(1)).high
        consumer.close()
        lab.bus.truncate(partition: 0, upTo: end)
        try nodes[2].consume()
        #expect(try nodes[2].rows("SELECT * FROM product") == [])
        try lab.export(nodes[2])
    }

    @Test func aDeleteThatASnapshotBringsIsExported() throws {
        let nodes = try prepareForSnapshot()
        try send("c", "again")
        try lab.ingest(nodes[0])
        try exchange(Array(nodes.prefix(2)))
        try nodes[1].write("DELETE FROM product")
        try exchange(Array(nodes.prefix(2)))
        try load(nodes)
        #expect(try lab.exported().map(\.operation) == ["r", "d", "d"])
        #expect(try lab.exported().last?.author == nil)
    }

    @Test func aDeleteThatOverrulesARowOfASnapshotIsExported() throws {
        let nodes = try prepareForSnapshot()
        let insertedAgain = earlierTime()
        try nodes[1].write("DELETE FROM product")
        try nodes[1].publish()
        try nodes[2].consume()
        try lab.export(nodes[2])
        try send("c", "again", at: insertedAgain)
        try lab.ingest(nodes[0])
        try nodes[0].publish()
        try load(nodes)
        #expect(try lab.exported().map(\.operation) == ["r", "d", "d"])
        #expect((try lab.exported().last?.hlc ?? 0) >> 16 > insertedAgain)
    }

    // MARK: Rows that wait

    private struct Orders {
        let lab: IngestLab
        let nodes: [TestNode]

        /// An order on three nodes, and a line of it that a device has deleted and inserted again, and that waits on
        /// the first node for the order, which another one has deleted meanwhile. The first node had exported it.
        init() throws {
            lab = try IngestLab(
                """
                CREATE TABLE product(id INTEGER PRIMARY KEY NOT NULL, name TEXT);
                CREATE TABLE trip(code TEXT PRIMARY KEY NOT NULL);
                CREATE TABLE line(id TEXT PRIMARY KEY NOT NULL, trip TEXT NOT NULL REFERENCES trip(code));
                """)
            let lab = lab
            nodes = try ["a", "b", "c"].map { try lab.node($0) }
            // The store has heard of a source.
            let source = lab.topic()
            try source.send("c", key: #"{"id":1}"#, after: #"{"id":1,"name":"source"}"#)
            try lab.ingest(nodes[0])
            try nodes[1].write("INSERT INTO trip VALUES ('t'); INSERT INTO line VALUES ('l', 't')")
            try exchange(nodes)
            try nodes[1].write("DELETE FROM line")
            try exchange(nodes)
            try nodes[2].write("DELETE FROM trip")
            try nodes[1].write("INSERT INTO line VALUES ('l', 't')")
            try nodes[1].publish()
            try nodes[0].consume()
            try lab.export(nodes[0])
            try nodes[2].publish()
            try nodes[0].consume()
        }
    }

    /// Its tombstone is from before its newest insert, after which nobody would believe it.
    @Test(arguments: [false, true]) func aRowThatWaitsIsRemovedWithoutATime(isTakeover: Bool) throws {
        let orders = try Orders()
        let a = orders.nodes[0]
        #expect(try a.rows("SELECT * FROM line") == [])
        #expect(try a.store.parked().map(\.entity) == ["line"])
        let exporter = try orders.lab.exporter(a, ingested: true)
        if isTakeover { try exporter.forgetPosition() }
        _ = try exporter.runUntilCaughtUp()
        let records = try orders.lab.exported("line")
        let last = try #require(records.last { $0.operation == "d" })
        #expect(last.hlc == nil)
    }

    @Test func theDeleteOfARowThatWaitsIsExported() throws {
        let orders = try Orders()
        let a = orders.nodes[0]
        try orders.lab.export(a)
        let count = try orders.lab.exported("line").count
        try orders.nodes[1].write("DELETE FROM line")
        try orders.nodes[1].publish()
        try a.consume()
        try orders.lab.export(a)
        let records = try orders.lab.exported("line")
        #expect(records.count == count + 1)
        #expect(records.last?.operation == "d")
        #expect(records.last?.hlc != nil)
    }
}
