import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Clocks by stable ID, which are collected before they are flushed to their side tables.
@Suite struct RecentClocksTests {
    let lab: Lab

    init() throws { lab = try Lab() }

    /// True if there are clocks that are not flushed yet.
    private func hasCollectedClocks(_ node: TestNode) throws -> Bool {
        try node.store.read { db in
            var hasAny = false
            try RecentClocks.forEach(db) { _ in hasAny = true }
            return hasAny
        }
    }

    /// The number of rows that have a clock.
    private func clockedRowCount(_ node: TestNode) throws -> Int {
        try node.records(of: "setting").count { $0.clocks.inserted ?? .zero > .zero }
    }

    enum Place: CaseIterable {
        /// Where they were collected.
        case collected
        /// Flushed by the engine, each at once.
        case flushed
        /// Flushed by an audit on another connection, while the engine has them in memory.
        case flushedByAnother
        /// Read back by an engine that starts.
        case readBack
    }

    @Test(arguments: Place.allCases) func anOlderChangeLosesWhereverTheNewerClockIsStored(place: Place) throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        let c = try lab.node("c") { if place == .flushed { $0.recentClocks = 1 } }
        try a.write("INSERT INTO setting VALUES ('k', 'first'), ('gone', 1)")
        try exchange([a, b, c])
        try a.write("UPDATE setting SET value = 'older' WHERE key = 'k'")
        try b.write("UPDATE setting SET value = 'newer' WHERE key = 'k'; DELETE FROM setting WHERE key = 'gone'")
        try b.publish()
        try c.consume()
        switch place {
        case .collected, .flushed: break
        case .flushedByAnother: _ = try c.store.audit()
        case .readBack: try c.restart()
        }
        #expect(try hasCollectedClocks(c) == (place == .collected || place == .readBack))
        try a.publish()
        try c.consume()
        try expectState(c, is: "setting key='k' value='newer'")
        // The audit reads the side tables: they contain each existing row, and no deleted one.
        #expect(try c.store.audit().isClean)
        #expect(try !hasCollectedClocks(c))
        #expect(try c.store.audit().isClean)
    }

    @Test func anEngineSeesTheClocksThatAnotherOneHasSet() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        let c = try lab.node("c")
        try a.write("INSERT INTO setting VALUES ('k', 'first')")
        try exchange([a, b])
        let inserted = try lab.messages()
        try a.write("UPDATE setting SET value = 'older' WHERE key = 'k'")
        try b.write("UPDATE setting SET value = 'newer' WHERE key = 'k'")
        try a.publish()
        let older = try lab.messages().suffix(1)
        try b.publish()
        let newer = try lab.messages().suffix(1)
        let first = c.engine
        try c.receive(inserted)
        try c.restart()
        try c.receive(Array(newer))
        let next = try first.offsets(topic: "direct").first { $0.partition == 9 }?.offset ?? 0
        var message = older[older.startIndex]
        message.position = PartitionPosition(partition: 9, offset: next)
        _ = try first.apply([message], topic: "direct")
        try expectState(c, is: "setting key='k' value='newer'")
    }

    /// This holds even if the other engine has set no collected clocks.
    @Test func anEngineSeesHowFarAnotherOneHasRead() throws {
        let a = try lab.node("a")
        let c = try lab.node("c")
        for number in 1...3 {
            try a.write("INSERT INTO trip(name) VALUES ('trip \(number)')")
            try a.publish()
        }
        let messages = try lab.messages()
        let first = c.engine
        #expect(try first.apply(Array(messages[..<1]), topic: "t").applied == 1)
        try c.restart()
        #expect(try c.engine.apply(Array(messages[1..<2]), topic: "t").applied == 1)
        // It recognizes the duplicate by its offset, and at another offset by its origin.
        var again = messages[1]
        #expect(try first.apply([again], topic: "t") == ApplyReport())
        again.position.offset = messages[2].position.offset
        #expect(try first.apply([again], topic: "t").duplicates == 1)
        #expect(try c.engine.offsets(topic: "t").map(\.offset) == [messages[2].position.offset + 1])
        var last = messages[2]
        last.position.offset += 1
        #expect(try c.engine.apply([last], topic: "t").applied == 1)
        #expect(try c.status().origins.map(\.applied) == [3])
        try expectBoth(
            a, c,
            are: """
                trip name='trip 1' budget=NULL
                trip name='trip 2' budget=NULL
                trip name='trip 3' budget=NULL
                """)
    }

    /// The clocks of small transactions are stored beside the node's clock, until there are enough for a row of the
    /// table.
    @Test func theClocksOfManySmallTransactionsAreAllReadBack() throws {
        let a = try lab.node("a")
        let c = try lab.node("c")
        var places: Set<String> = []
        for number in 1...120 {
            try a.write("INSERT INTO setting VALUES ('key \(number)', \(number))")
            try a.publish()
            try c.consume()
            places.insert(
                try c.rows(
                    """
                    SELECT (SELECT count(*) FROM _martlet_recent),
                    (SELECT count(*) FROM _martlet_meta WHERE key = 'recent_clocks')
                    """)[0])
        }
        #expect(places.isSuperset(of: ["0|1", "1|1", "2|1"]), "\(places)")
        try c.restart()
        #expect(try c.store.audit().isClean)
        #expect(try clockedRowCount(c) == 120)
        #expect(try !hasCollectedClocks(c))
    }

    @Test func aLocalChangeSeesCollectedClocks() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 'first')")
        try exchange([a, b])
        // A row is replaced under its key, and its key is changed: the clock follows both times.
        try b.foreignWrite("REPLACE INTO setting VALUES ('k', 'second')")
        try exchange([a, b])
        try b.write("UPDATE setting SET key = 'l'")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='l' value='second'")
        for node in [a, b] { #expect(try node.store.audit().isClean) }
    }

    @Test func theClocksOfALargeTransactionAreAllReadBack() throws {
        let a = try lab.node("a")
        let c = try lab.node("c")
        try a.write(
            """
            WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
            INSERT INTO setting SELECT 'a key of some length ' || i, i FROM n
            """)
        try exchange([a, c])
        // There are more clocks than the engine holds until the transaction ends.
        #expect(try c.rows("SELECT count(*) > 1 FROM _martlet_recent") == ["1"])
        try c.restart()
        #expect(try c.store.audit().isClean)
        #expect(try clockedRowCount(c) == 6000)
        #expect(try !hasCollectedClocks(c))
    }
}
