import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Conditions on columns whose reference waits for its target: the table has NULL there.
@Suite struct FilteredReferenceTests {
    let lab: Lab

    init() throws {
        lab = try Lab(
            """
            CREATE TABLE region(code TEXT PRIMARY KEY NOT NULL);
            CREATE TABLE orders(id INTEGER PRIMARY KEY, region TEXT REFERENCES region(code), note TEXT);
            """)
    }

    private func subscriber() throws -> TestNode { try lab.node("b") { $0.filters = Self.european } }

    private static let european: SyncFilters = {
        var filters = SyncFilters()
        filters.subscribe = ["orders": "region = 'EU'"]
        return filters
    }()

    @Test func aRowThatIsUpdatedWhileItsReferenceWaitsStaysInItsTable() throws {
        let (a, b) = (try lab.node("a"), try subscriber())
        try a.write("INSERT INTO region VALUES ('EU')")
        try a.write("INSERT INTO orders VALUES (1, 'EU', 'one')")
        try a.write("UPDATE orders SET note = 'two'")
        try a.publish()
        let sent = try lab.messages()
        try b.receive([sent[1]])
        try b.receive([sent[2]])
        #expect(try b.store.fetchHistory().flatMap(\.changes).allSatisfy { $0.kind != .delete })
        try expectState(
            b,
            is: """
                orders region=NULL note='two'
                pending missingTarget orders region='EU'
                """)
        try b.receive([sent[0]])
        try expectBoth(
            a, b,
            are: """
                orders region='EU' note='two'
                region code='EU'
                """)
    }

    @Test func aRowLeavesItsTableWithAReferenceThatWaits() throws {
        let (a, b) = (try lab.node("a"), try subscriber())
        try a.write("INSERT INTO region VALUES ('EU')")
        try a.write("INSERT INTO orders VALUES (1, 'EU', 'one')")
        try a.write("INSERT INTO region VALUES ('US')")
        try a.write("UPDATE orders SET region = 'US'")
        try a.write("UPDATE orders SET region = 'EU'")
        try a.publish()
        let sent = try lab.messages()
        try b.receive([sent[0], sent[1], sent[3]])
        try expectState(b, is: "region code='EU'")
        #expect(try b.parked() == ["filtered"])
        try b.receive([sent[2], sent[4]])
        try expectBoth(
            a, b,
            are: """
                orders region='EU' note='one'
                region code='EU'
                region code='US'
                """)
    }
}
