import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// The history returns values as they were written.
@Suite struct ValueTests {
    private static let values: [(sql: String, value: Value)] = [
        ("NULL", .null), ("-9223372036854775808", .integer(.min)), ("9223372036854775807", .integer(.max)),
        ("9007199254740993", .integer(9_007_199_254_740_993)), ("9e999", .real(.infinity)),
        ("-9e999", .real(-.infinity)),
        ("5e-324", .real(.leastNonzeroMagnitude)), ("0.1", .real(0.1)), ("1.0", .real(1)), ("1", .integer(1)),
        ("''", .text("")), ("x''", .blob([])), ("x'00ff'", .blob([0, 255])),
        ("CAST(x'610062' AS TEXT)", .text("a\u{0}b")), ("CAST(x'61ff00fe' AS TEXT)", .rawText([0x61, 0xff, 0, 0xfe])),
        // Invalid UTF-8 whose repair has as many bytes, and a replacement character that was really written.
        ("CAST(x'f09f98' AS TEXT)", .rawText([0xf0, 0x9f, 0x98])), ("char(65533)", .text("\u{fffd}")),
        ("'e' || char(769)", .text("e\u{301}")), ("char(233)", .text("\u{e9}")), ("'😀'", .text("😀")),
        ("hex(zeroblob(600000))", .text(String(repeating: "0", count: 1_200_000))),
        ("zeroblob(70000)", .blob(Array(repeating: 0, count: 70000))),
    ]

    @Test func p25theHistoryReturnsEveryValueExactly() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v, w)")
        for (index, value) in Self.values.enumerated() {
            try temporary.raw(
                "INSERT INTO item VALUES (\(index), \(value.sql), 'x'); "
                    + "UPDATE item SET w = \(value.sql) WHERE id = \(index)")
        }
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        #expect(changes.filter { $0.kind == .insert }.map { $0.values["v"] } == Self.values.map { $0.value })
        #expect(changes.filter { $0.kind == .update }.map { $0.values["w"] } == Self.values.map { $0.value })
    }

    @Test func p25everyValueWorksAsAnIdentityAndInATombstone() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(v PRIMARY KEY, w)")
        for value in Self.values.dropFirst() where value.sql != "1.0" {
            try temporary.raw("INSERT INTO item VALUES (\(value.sql), 1); DELETE FROM item")
        }
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        let expected = Self.values.dropFirst().filter { $0.sql != "1.0" }.map { $0.value }
        #expect(changes.filter { $0.kind == .delete }.map { $0.tombstone["v"] } == expected)
        #expect(try changes.map { try $0.identity?.values() } == expected.flatMap { [[$0], [$0]] })
    }

    @Test func p25negativeZeroIsZeroAndNaNIsNull() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v, r REAL)")
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item VALUES (1, ?, ?)", arguments: [-0.0, -0.0]) }
        try temporary.store.write {
            try $0.execute(sql: "INSERT INTO item VALUES (2, ?, ?)", arguments: [Double.nan, Double.nan])
        }
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        // SQLite treats zeros of both signs as equal, so that no trigger sees a change from one to the other.
        #expect(changes[0].values == ["v": .real(0), "r": .real(0)])
        for case .real(let zero) in changes[0].values.values { #expect(zero.sign == .plus) }
        #expect(changes[1].values == ["v": .null, "r": .null])
    }

    @Test(arguments: ForeignProgram.allCases)
    func p03twoQuickUpdatesLogTheirOwnValues(_ program: ForeignProgram) throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, v); INSERT INTO item VALUES (1, 0)")
        try temporary.run(program, "UPDATE item SET v = 1; UPDATE item SET v = 2; UPDATE item SET v = v + 10, id = 4")
        #expect(try temporary.changes() == ["update item#1 v=1", "update item#1 v=2", "update item#4 v=12"])
    }

    @Test func updatesThatChangeNoValueLogNothing() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, v, r REAL, n INT);
            INSERT INTO item VALUES (1, 'a', 1, 1, NULL);
            """)
        try temporary.raw(
            "UPDATE item SET name = 'a', v = 1, r = 1, n = NULL; UPDATE item SET id = 1; UPDATE item SET n = n")
        #expect(try temporary.changes().isEmpty)
        #expect(try temporary.store.fetchHistory().isEmpty)
        try temporary.raw(
            "UPDATE item SET name = 'A'; UPDATE item SET v = 1.0; UPDATE item SET r = 1.0; UPDATE item SET v = '1'")
        #expect(
            try temporary.changes() == [#"update item#1 name="A""#, "update item#1 v=1.0", #"update item#1 v="1""#])
    }

    @Test func aStrictAnyColumnDistinguishesOneFromOnePointZero() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, v ANY) STRICT; INSERT INTO item VALUES (1, 1)")
        try temporary.raw("UPDATE item SET v = 1.0")
        #expect(try temporary.changes() == ["update item#1 v=1.0"])
    }

    @Test(arguments: [61, 62, 63, 64, 300, 1200])
    func theHistoryNamesTheChangedColumnsOfAWideTable(_ count: Int) throws {
        let columns = (1...count).map { "k\($0)" }
        let temporary = try TemporaryStore(
            "CREATE TABLE wide(id INTEGER PRIMARY KEY, \(columns.joined(separator: ", "))); "
                + "INSERT INTO wide(id, k1) VALUES (1, 1)")
        try temporary.raw("UPDATE wide SET k\(count) = 'x', k2 = 2; INSERT INTO wide(id, k\(count)) VALUES (2, 5)")
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        #expect(changes[0].values == ["k2": .integer(2), "k\(count)": .text("x")])
        #expect(changes[1].values.count == count)
        #expect(changes[1].values["k\(count)"] == .integer(5))
    }

    @Test func theHistoryKeepsOldValuesOnRequest() throws {
        var request = AttachRequest()
        request.keepsOldValues = true
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, a, b); INSERT INTO item VALUES (1, 'x', NULL)", attach: request)
        try temporary.raw("UPDATE item SET a = 'y'; UPDATE item SET b = 1, id = 7; DELETE FROM item")
        #expect(
            try temporary.changes() == [
                #"update item#1 a="y" was a="x""#, "update item#7 b=1 was b=null", #"delete item#7 a="y" b=1"#,
            ])
    }

    @Test func anUpdateOfTheIdentityLogsBothIdentities() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(a TEXT, b INT, note TEXT, PRIMARY KEY(a, b)); INSERT INTO item VALUES ('x', 1, 'n')")
        try temporary.raw("UPDATE item SET b = 2; UPDATE item SET b = 3, note = 'm'")
        #expect(try temporary.changes() == ["update item b=2 was b=1", #"update item b=3 note="m" was b=2"#])
        let identities = try temporary.store.fetchHistory().flatMap(\.changes).map { try $0.identity?.values() }
        #expect(identities == [[.text("x"), .integer(2)], [.text("x"), .integer(3)]])
    }
}
