import MartletBus
import MartletCore
import MartletIngest
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Topics that change, tables that don't fit, and records that can't be merged.
@Suite(.timeLimit(.minutes(5))) struct IngestTopicTests {
    private static let topic = "pg.public.product"
    private static let mapping = TableMapping(topic: topic, table: "product")

    private func row(_ id: Int, _ name: String) -> String { #"{"id":\#(id),"name":"\#(name)"}"# }
    private func key(_ id: Int) -> String { #"{"id":\#(id)}"# }

    @Test func aRecordThatCantBeMergedHoldsUpItsPartitionOnly() throws {
        let lab = try IngestLab()
        let clock = TestClock()
        let a = try lab.node("a", clock: clock)
        let source = lab.topic(partitions: 4)
        for id in 1...40 { try source.send("c", key: key(id), after: row(id, "first")) }
        try source.send(key(7), #"{"op":"?"}"#)
        let held = try #require(try lab.position(ofLastIn: source.bus, key: key(7)))
        for id in 1...40 { try source.send("u", key: key(id), before: row(id, "first"), after: row(id, "second")) }
        let ingester = try lab.ingester(a)
        _ = try ingester.runUntilCaughtUp()
        let others = try a.rows("SELECT count(*) FROM product WHERE name = 'second'")
        #expect(others != ["40"] && others != ["0"])
        #expect(try a.rows("SELECT name FROM product WHERE id = 7") == ["first"])
        let places = try a.store.ingestPlaces()
        #expect(places.filter { $0.problem != nil }.map(\.partition) == [held.partition])
        #expect(places.first { $0.problem != nil }?.next == held.offset)
        #expect(places.count == 4)
        // It is tried again, after a while.
        #expect(try ingester.step(timeout: .milliseconds(1)) == .idle)
        clock.pass(.seconds(2))
        #expect(try ingester.step(timeout: .milliseconds(1)) == .idle)
        // A person leaves it out, and the partition goes on.
        for wrong in [held.offset - 1, held.offset + 1] {
            #expect(throws: StoreError.self) {
                try a.store.skipIngested(topic: Self.topic, partition: held.partition, offset: wrong)
            }
        }
        try a.store.skipIngested(topic: Self.topic, partition: held.partition, offset: held.offset)
        clock.pass(.seconds(60))
        _ = try ingester.runUntilCaughtUp()
        #expect(try a.rows("SELECT count(*) FROM product WHERE name = 'second'") == ["40"])
        #expect(try a.store.ingestPlaces().allSatisfy { $0.problem == nil })
    }

    @Test func aTableThatIsMissingIsAwaited() throws {
        let lab = try IngestLab("CREATE TABLE other(id TEXT PRIMARY KEY NOT NULL)")
        let clock = TestClock()
        let a = try lab.node("a", clock: clock, identities: [:])
        try lab.topic().send("c", key: key(1), after: row(1, "Nail"))
        let ingester = try lab.ingester(a)
        #expect(try ingester.runUntilCaughtUp() == 0)
        #expect(try a.store.ingestPlaces().first?.problem?.contains("no tracked table product") ?? false)
        try a.write("CREATE TABLE product(id INTEGER PRIMARY KEY NOT NULL, name TEXT)")
        var request = AttachRequest()
        request.identities = ["product": ["id"]]
        _ = try a.store.attach(request)
        clock.pass(.seconds(60))
        #expect(try ingester.runUntilCaughtUp() == 1)
        #expect(try a.rows("SELECT * FROM product") == ["1|Nail"])
    }

    @Test func aTableThatCantTakeRowsOfASourceIsRefused() throws {
        let lab = try IngestLab(
            """
            CREATE TABLE product(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE part(code TEXT PRIMARY KEY NOT NULL, product INTEGER REFERENCES product(id));
            CREATE TABLE secret(code TEXT PRIMARY KEY NOT NULL);
            CREATE TABLE own(code TEXT PRIMARY KEY NOT NULL, kind TEXT);
            """)
        let a = try lab.node("a", identities: [:]) { configuration in
            var filters = SyncFilters()
            filters.ignoredTables = ["secret"]
            filters.publish = ["own": "kind = 'public'"]
            configuration.filters = filters
        }
        for (table, word) in [
            ("product", "Martlet assigns the IDs"), ("part", "which each node numbers"), ("secret", "a filter ignores"),
            ("own", "a filter decides"),
        ] {
            let error = #expect(throws: StoreError.self) {
                _ = try lab.ingester(a, [TableMapping(topic: "x", table: table)])
            }
            #expect(error?.message.contains(word) ?? false, "\(table): \(error?.message ?? "")")
        }
        #expect(throws: StoreError.self) { _ = try lab.ingester(a, [TableMapping(topic: "", table: "x")]) }
    }

    @Test func aKeyOfOtherColumnsHoldsUpThePartition() throws {
        let lab = try IngestLab()
        let a = try lab.node("a")
        try lab.topic().send("c", key: #"{"name":"Nail"}"#, after: row(1, "Nail"))
        #expect(try lab.ingest(a) == 0)
        #expect(try a.store.ingestPlaces().first?.problem?.contains("identified by id") ?? false)
    }

    @Test func recordsThatTheTopicHasDroppedAreSkipped() throws {
        let lab = try IngestLab()
        let a = try lab.node("a")
        let source = lab.topic()
        for id in 1...5 { try source.send("c", key: key(id), after: row(id, "x")) }
        source.bus.truncate(partition: 0, upTo: 2)
        #expect(try lab.ingest(a) == 3)
        for id in 6...9 { try source.send("c", key: key(id), after: row(id, "x")) }
        source.bus.truncate(partition: 0, upTo: 7)
        #expect(try lab.ingest(a) == 2)
        #expect(try a.rows("SELECT group_concat(id) FROM product") == ["3,4,5,8,9"])
    }

    /// Also while the ingester runs.
    @Test(arguments: [false, true]) func aTopicThatWasRecreatedIsReadFromItsBeginning(isRunning: Bool) throws {
        let lab = try IngestLab()
        let a = try lab.node("a")
        let source = lab.topic()
        for id in 1...5 { try source.send("c", key: key(id), after: row(id, "x")) }
        var ingester = try lab.ingester(a)
        #expect(try ingester.runUntilCaughtUp() == 5)
        source.bus.wipe()
        try source.send("r", key: key(6), after: row(6, "y"))
        if !isRunning { ingester = try lab.ingester(a) }
        while try a.rows("SELECT count(*) FROM product") == ["5"] { _ = try ingester.step(timeout: .milliseconds(1)) }
        #expect(try a.rows("SELECT group_concat(id) FROM product") == ["1,2,3,4,5,6"])
        #expect(try lab.places(a) == ["\(Self.topic)/0 1 "])
    }

    @Test func partitionsThatAreAddedAreRead() throws {
        let lab = try IngestLab()
        let clock = TestClock()
        let a = try lab.node("a", clock: clock)
        let source = lab.topic()
        try source.send("c", key: key(1), after: row(1, "x"))
        let ingester = try lab.ingester(a)
        _ = try ingester.runUntilCaughtUp()
        source.bus.addPartitions(3)
        for id in 2...20 { try source.send("c", key: key(id), after: row(id, "x")) }
        clock.pass(.seconds(61))
        while try a.rows("SELECT count(*) FROM product") != ["20"] { _ = try ingester.step(timeout: .milliseconds(1)) }
        #expect(try a.store.ingestPlaces().count == 4)
    }

    @Test func aRowIsAwaitedByThoseThatReferToIt() throws {
        let lab = try IngestLab(
            """
            CREATE TABLE product(id INTEGER PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE price(id INTEGER PRIMARY KEY NOT NULL, product INTEGER NOT NULL REFERENCES product(id));
            """)
        let (a, b) = (
            try lab.node("a", identities: ["product": ["id"], "price": ["id"]]),
            try lab.node("b", identities: ["product": ["id"], "price": ["id"]])
        )
        let prices = TableMapping(topic: "pg.public.price", table: "price")
        try lab.topic(prices.topic).send("c", key: key(1), after: #"{"id":1,"product":7}"#)
        try lab.ingest(a, [prices])
        try exchange([a, b])
        for node in [a, b] { #expect(try node.store.parked().map(\.reason) == [.missingTarget]) }
        try lab.topic().send("c", key: key(7), after: row(7, "Nail"))
        try lab.ingest(a, [prices, Self.mapping])
        try exchange([a, b])
        for node in [a, b] {
            #expect(try node.rows("SELECT * FROM price") == ["1|7"])
            #expect(try node.store.parked().isEmpty)
        }
    }

    @Test func aMappingRenamesColumnsAndLeavesOutOthers() throws {
        let lab = try IngestLab()
        let a = try lab.node("a")
        let mapping = TableMapping(topic: "x", table: "product", columns: ["nr": "id", "title": "name"])
        try lab.topic("x").send("c", key: #"{"nr":1}"#, after: #"{"nr":1,"title":"Nail","price":3}"#)
        try lab.ingest(a, [mapping])
        #expect(try a.rows("SELECT * FROM product") == ["1|Nail|NULL|NULL"])
    }
}
