import MartletCore
import MartletIngest
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What becomes of rows that a source and devices change.
@Suite(.timeLimit(.minutes(5))) struct IngestMergeTests {
    private static let nail = #"{"id":1,"name":"Nail","price":0.5,"stock":100}"#
    private static let key = #"{"id":1}"#

    private let lab: IngestLab
    private let a: TestNode
    private let b: TestNode
    private let source: SourceTopic

    init() throws {
        lab = try IngestLab()
        a = try lab.node("a")
        b = try lab.node("b")
        source = lab.topic()
        try source.send("c", key: Self.key, after: Self.nail)
        try lab.ingest(a)
        try exchange([a, b])
    }

    private func expect(_ rows: [String], _ comment: Comment? = nil) throws {
        try lab.ingest(a)
        try exchange([a, b])
        for node in [a, b] { #expect(try node.rows("SELECT * FROM product ORDER BY id") == rows, comment) }
    }

    @Test func theLaterOfTwoWritersWins() throws {
        let early = SQLiteClock.milliseconds
        try b.write("UPDATE product SET price = 9")
        // It was made before, and comes later.
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "1"), at: early)
        try expect(["1|Nail|9.0|100"])
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "2"))
        try expect(["1|Nail|2.0|100"])
        // The device's value won, and lost.
        for node in [a, b] { #expect(try node.store.conflicts().map(\.value) == [.real(1), .real(9)]) }
    }

    @Test func anUpdateWithTheRowBeforeLeavesOtherColumnsAlone() throws {
        try b.write("UPDATE product SET stock = 7")
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "2"))
        try expect(["1|Nail|2.0|7"])
    }

    @Test(arguments: [nil, #"{"id":1}"#]) func anUpdateWithoutTheRowBeforeSetsWhatDiffers(before: String?) throws {
        try b.write("UPDATE product SET stock = 7")
        // The source has said nothing new of the stock, as far as this node knows.
        try source.send("u", key: Self.key, before: before, after: Self.nail.replacing("0.5", with: "2"))
        try expect(["1|Nail|2.0|7"])
        // Now it differs, and nobody can tell who has changed it.
        try source.send("u", key: Self.key, before: before, after: Self.nail.replacing("0.5", with: "3"))
        try expect(["1|Nail|3.0|100"])
    }

    @Test func aSnapshotOverrulesNoDeviceAndRefreshesWhatTheSourceSet() throws {
        try b.write("UPDATE product SET stock = 7")
        try exchange([a, b])
        try source.send("r", key: Self.key, after: #"{"id":1,"name":"Pin","price":0.5,"stock":99}"#)
        try source.send("r", key: #"{"id":2}"#, after: #"{"id":2,"name":"Screw","price":1,"stock":5}"#)
        try expect(["1|Pin|0.5|7", "2|Screw|1.0|5"])
        // Nothing has changed: there is nothing to say.
        let before = try a.outbox().count
        try source.send("r", key: Self.key, after: #"{"id":1,"name":"Pin","price":0.5,"stock":99}"#)
        try expect(["1|Pin|0.5|7", "2|Screw|1.0|5"])
        #expect(try a.outbox().count == before)
    }

    @Test func rowsFromBeforeTheTableWasAttachedAreRefreshed() throws {
        let lab = try IngestLab(IngestLab.schema + "; INSERT INTO country VALUES ('ch', 'Swiss'), ('at', 'Austria')")
        let node = try lab.node("a")
        let mapping = TableMapping(topic: "pg.public.country", table: "country")
        try lab.topic(mapping.topic).send(
            "r", key: #"{"code":"ch"}"#, after: #"{"code":"ch","name":"Switzerland"}"#)
        try lab.ingest(node, [mapping])
        #expect(try node.rows("SELECT * FROM country ORDER BY 1") == ["at|Austria", "ch|Switzerland"])
    }

    @Test func anUpdateRevivesNoRowThatADeviceDeletedAndAnInsertDoes() throws {
        try b.write("DELETE FROM product")
        try exchange([a, b])
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "2"))
        try source.send("r", key: Self.key, after: Self.nail.replacing("0.5", with: "3"))
        try expect([])
        try source.send("c", key: Self.key, after: Self.nail.replacing("0.5", with: "4"))
        try expect(["1|Nail|4.0|100"])
    }

    @Test func anUpdateWithoutItsInsertInsertsTheRow() throws {
        // Compaction has removed the insert, and after a delete the next one.
        let other = #"{"id":2,"name":"Screw","price":1,"stock":null}"#
        try source.send("u", key: #"{"id":2}"#, before: other, after: other.replacing("null", with: "4"))
        try expect(["1|Nail|0.5|100", "2|Screw|1.0|4"])
        try source.sendDelete(key: Self.key)
        try expect(["2|Screw|1.0|4"])
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail)
        try expect(["1|Nail|0.5|100", "2|Screw|1.0|4"])
    }

    @Test func aDeleteOverrulesWhatADeviceHasSetBefore() throws {
        try b.write("UPDATE product SET stock = 7")
        try exchange([a, b])
        try source.sendDelete(key: Self.key)
        try expect([])
        for node in [a, b] { #expect(try node.store.conflicts().map(\.value) == [.integer(7)]) }
    }

    @Test func recordsThatComeAgainChangeNothing() throws {
        let (then, position) = (SQLiteClock.milliseconds, source.position)
        let cheap = Self.nail.replacing("0.5", with: "0.1")
        try source.send("u", key: Self.key, before: Self.nail, after: cheap)
        try source.sendDelete(key: Self.key)
        try source.send("c", key: Self.key, after: Self.nail.replacing("Nail", with: "Pin"))
        try expect(["1|Pin|0.5|100"])
        let rows = try a.outbox().count
        try source.send("u", key: Self.key, before: Self.nail, after: cheap, at: then + 1, lsn: position + 1)
        try source.send("d", key: Self.key, before: Self.nail, at: then + 2, lsn: position + 2)
        try source.send(Self.key, nil)
        try expect(["1|Pin|0.5|100"])
        #expect(try a.outbox().count > rows)
    }

    @Test func aNullRecordByItselfIsADelete() throws {
        try source.send(Self.key, nil)
        try expect([])
    }

    @Test func theNullRecordOfADeleteIsNoDeleteOfItsOwn() throws {
        try source.send("d", key: Self.key, before: Self.nail)
        try expect([])
        try b.write("INSERT INTO product VALUES (1, 'Own', 1, 1)")
        try a.restart()
        try source.send(Self.key, nil)
        try expect(["1|Own|1.0|1"])
        // Another one is, just after the record before it.
        try source.send(Self.key, nil)
        try expect(["1|Own|1.0|1"])
        try source.send("c", key: #"{"id":2}"#, after: Self.nail.replacing(#""id":1"#, with: #""id":2"#))
        try source.send(#"{"id":2}"#, nil)
        try expect(["1|Own|1.0|1"])
    }

    @Test func aChangeOfTheKeyIsADeleteAndAnInsert() throws {
        try source.sendDelete(key: Self.key, before: Self.nail)
        try source.send("c", key: #"{"id":5}"#, after: Self.nail.replacing(#""id":1"#, with: #""id":5"#))
        try expect(["5|Nail|0.5|100"])
    }

    @Test func severalChangesOfARowInOneBatchAreInOrder() throws {
        for price in 1...20 {
            try source.send(
                "u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "\(price)"))
        }
        try source.sendDelete(key: Self.key)
        try source.send("c", key: Self.key, after: Self.nail.replacing("0.5", with: "21"))
        try expect(["1|Nail|21.0|100"])
    }

    @Test func theSourcesClockMayBeSetBack() throws {
        let then = SQLiteClock.milliseconds
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "2"), at: then)
        try source.send(
            "u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "3"), at: then - 3_600_000)
        try expect(["1|Nail|3.0|100"])
    }

    @Test func aTimeAheadIsCutSoThatOtherNodesTakeIt() throws {
        let ahead = SQLiteClock.milliseconds + 86_400_000
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "2"), at: ahead)
        try source.send("u", key: Self.key, before: Self.nail, after: Self.nail.replacing("0.5", with: "3"), at: ahead)
        try expect(["1|Nail|3.0|100"])
        #expect(try a.store.parked().isEmpty)
    }

    @Test func aFilterDecidesWhichRowsAreTaken() throws {
        let lab = try IngestLab()
        let few = try lab.node("few") { configuration in
            var filters = SyncFilters()
            filters.subscribe = ["product": "stock > 10"]
            configuration.filters = filters
        }
        let all = try lab.node("all")
        let source = lab.topic()
        try source.send("c", key: Self.key, after: Self.nail)
        try source.send("c", key: #"{"id":2}"#, after: #"{"id":2,"name":"Screw","price":1,"stock":5}"#)
        try lab.ingest(few)
        try exchange([few, all])
        #expect(try few.rows("SELECT id FROM product") == ["1"])
        #expect(try all.rows("SELECT id FROM product") == ["1", "2"])
    }

    private static let fields: KeyValuePairs = [
        "id": #""type":"int64""#, "name": #""type":"string""#, "price": #""type":"double""#,
        "stock": #""type":"int64""#, "unit": #""type":"string""#,
    ]

    @Test func aColumnThatTheTableLacksWaitsForIt() throws {
        let wide = Self.nail.replacing("}", with: #","unit":"kg"}"#)
        try source.send(
            "u", key: Self.key, before: wide, after: wide.replacing("kg", with: "box"), fields: Self.fields)
        try expect(["1|Nail|0.5|100"])
        for node in [a, b] { #expect(try node.store.parked().map(\.reason) == [.unknownSchema]) }
        for node in [a, b] { try node.write("ALTER TABLE product ADD COLUMN unit TEXT") }
        try expect(["1|Nail|0.5|100|box"])
        for node in [a, b] { #expect(try node.store.parked().isEmpty) }
    }

    /// Without a schema, nobody knows what the value is.
    @Test func aColumnThatTheTableLacksHoldsUpRecordsWithoutSchemas() throws {
        let wide = Self.nail.replacing("}", with: #","unit":"kg"}"#)
        try source.send("u", key: Self.key, before: wide, after: wide.replacing("kg", with: "box"))
        try expect(["1|Nail|0.5|100"])
        #expect(try a.store.ingestPlaces().first?.problem?.contains("unit") ?? false)
        for node in [a, b] { try node.write("ALTER TABLE product ADD COLUMN unit TEXT") }
        try expect(["1|Nail|0.5|100|box"])
    }
}
