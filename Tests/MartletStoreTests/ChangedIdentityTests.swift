import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Tables whose identity columns change.
@Suite struct ChangedIdentityTests {
    private static let schema = "CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT, start REAL, place TEXT)"
    private static let unique = "CREATE UNIQUE INDEX trip_unique ON trip(name, start)"

    private func request(_ columns: [String]) -> AttachRequest {
        var request = AttachRequest()
        request.tables = ["trip"]
        request.identities = ["trip": columns]
        return request
    }

    private func names(_ temporary: TemporaryStore) throws -> [StableID?] {
        try temporary.store.fetchHistory().flatMap(\.changes).map(\.identity)
    }

    @Test func rowsKeepTheIDsFromTheirInserts() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO trip VALUES (1, 'a', 1, 'x'), (2, 'b', 2, 'y')")
        try temporary.raw("UPDATE trip SET place = 'z' WHERE id = 1; DELETE FROM trip WHERE id = 2")
        let before = try names(temporary)
        #expect(before[0] == before[2] && before[1] == before[3] && before[0] != before[1])
        let report = try temporary.store.alter(sql: Self.unique, attaching: request(["name", "start"]))
        #expect(report.changed == ["trip"] && report.attached.isEmpty)
        try temporary.raw("UPDATE trip SET name = 'c' WHERE id = 1; INSERT INTO trip VALUES (3, 'd', 4, 'x')")
        try temporary.raw("UPDATE trip SET name = 'e' WHERE id = 3; DELETE FROM trip WHERE id = 1")
        let now = try names(temporary)
        #expect(Array(now.prefix(4)) == before)
        #expect(now[4] == before[0] && now[7] == before[0])
        #expect(now[5] == StableID(values: [.text("d"), .real(4)]))
        #expect(now[6] == StableID(values: [.text("e"), .real(4)]))
        #expect(try temporary.changes().last == #"delete trip#1 name="c" start=1.0"#)
        #expect(try temporary.store.audit().isClean)
        // Attaching again with the same columns changes nothing.
        #expect(try temporary.store.attach(request(["name", "start"])).alreadyTracked == ["trip"])
    }

    /// Earlier changes are identified by the rule of their time, even after its columns left the schema.
    @Test func aScriptMayDropTheFormerIdentityColumns() throws {
        let temporary = try TemporaryStore(Self.schema + ";" + Self.unique, attach: nil)
        _ = try temporary.store.attach(request(["name", "start"]))
        try temporary.raw("INSERT INTO trip VALUES (1, 'a', 1, 'x'); UPDATE trip SET place = 'y'")
        let before = try names(temporary)
        try temporary.store.alter(
            sql: """
                DROP INDEX trip_unique; ALTER TABLE trip DROP COLUMN start;
                ALTER TABLE trip RENAME COLUMN name TO title;
                CREATE UNIQUE INDEX u ON trip(title, place);
                """, attaching: request(["title", "place"]))
        #expect(try names(temporary) == before)
        try temporary.raw("INSERT INTO trip VALUES (2, 'b', 'z'); UPDATE trip SET place = 'w' WHERE id = 1")
        #expect(try names(temporary)[2...] == [StableID(values: [.text("b"), .text("z")]), before[0]])
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    @Test func aFailedScriptChangesNoIdentity() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO trip VALUES (1, 'a', 1, 'x')")
        let before = try temporary.store.trackedEntities()
        #expect(throws: StoreError.self) {
            try temporary.store.alter(
                sql: "ALTER TABLE trip RENAME COLUMN name TO title", attaching: request(["title", "start"]))
        }
        #expect(try temporary.store.trackedEntities() == before)
        #expect(try names(temporary).count == 1)
    }

    @Test func severalStepsInOneAlterFormOneTransaction() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.store.alter(context: "app") { alteration in
            let db = alteration.database
            try db.execute(sql: "INSERT INTO trip VALUES (1, 'a', 1, 'x')")
            try SchemaScript.run(db, "ALTER TABLE trip RENAME COLUMN name TO title")
            try SchemaScript.run(
                db, "CREATE UNIQUE INDEX u ON trip(title, start)", attaching: request(["title", "start"]))
            try db.execute(sql: "INSERT INTO trip VALUES (2, 'b', 2, 'y'); UPDATE trip SET title = 'c' WHERE id = 1")
        }
        let transactions = try temporary.store.fetchHistory()
        #expect(transactions.count == 1)
        let names = transactions[0].changes.map(\.identity)
        #expect(names[1] == StableID(values: [.text("b"), .real(2)]))
        #expect(names[0] != nil && names[0] == names[2])
        #expect(names[0] != StableID(values: [.text("a"), .real(1)]))
    }

    /// Rows with null in their identity columns were not synced; assigned IDs identify every row.
    @Test func returningToAssignedIDsIdentifiesRowsWithNullIdentities() throws {
        let temporary = try TemporaryStore(Self.schema + ";" + Self.unique, attach: nil)
        try temporary.raw("INSERT INTO trip VALUES (1, NULL, 1, 'x')")
        _ = try temporary.store.attach(request(["name", "start"]))
        try temporary.raw("INSERT INTO trip VALUES (2, 'b', 2, 'y'), (3, 'c', 3, 'y')")
        #expect(try temporary.store.attach(request([])).changed == ["trip"])
        try temporary.raw("UPDATE trip SET name = 'd'; INSERT INTO trip VALUES (4, 'b', 2, 'y')")
        let changes = try temporary.store.fetchHistory().flatMap(\.changes)
        #expect(
            changes.map(\.line) == [
                #"insert trip#2 name="b" place="y" start=2.0"#, #"insert trip#3 name="c" place="y" start=3.0"#,
                #"insert trip#1 name=null place="x" start=1.0"#, #"update trip#1 name="d""#, #"update trip#2 name="d""#,
                #"update trip#3 name="d""#, #"insert trip#4 name="b" place="y" start=2.0"#,
            ])
        let names = changes.map(\.identity)
        #expect(names[0] == StableID(values: [.text("b"), .real(2)]) && names[4] == names[0])
        #expect(names[3] == names[2] && names[6] != names[0])
        #expect(Set(names).count == 4 && !names.contains(nil))
    }

    @Test func pruningKeepsTheIDsOfRows() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO trip VALUES (1, 'a', 1, 'x')")
        let first = try names(temporary)[0]
        try temporary.store.alter(sql: Self.unique, attaching: request(["name", "start"]))
        try temporary.raw("INSERT INTO trip VALUES (2, 'b', 2, 'y'), (3, 'c', 3, 'y')")
        try temporary.raw("UPDATE trip SET start = start + 10; UPDATE trip SET name = NULL WHERE id = 3")
        let token = try #require(try temporary.store.lastToken())
        try temporary.raw("UPDATE trip SET name = 'n' || id")
        try temporary.raw("UPDATE trip SET place = 'end'")
        try temporary.store.closeForeignTransactions()
        try temporary.store.deleteHistory(through: token)
        let kept = try temporary.store.identities(of: "trip").sorted { $0.key < $1.key }.map(\.value)
        let second = StableID(values: [.text("b"), .real(12)])
        #expect(kept == [first, second, StableID(values: [.text("c"), .real(13)])])
        let renamed = StableID(values: [.text("n2"), .real(12)])
        #expect(try names(temporary)[1] == renamed && names(temporary)[4] == renamed)
        #expect(try temporary.store.audit().isClean)
    }

    /// Null identifies no row. This store doesn't sync, so that only pruning stores stable IDs.
    @Test func pruningGivesAnIDToARowWithNullInItsIdentity() throws {
        let temporary = try TemporaryStore(Self.schema + ";" + Self.unique, attach: request(["name", "start"]))
        let store = temporary.store
        try store.write { try $0.execute(sql: "INSERT INTO trip VALUES (1, NULL, 1, 'x'), (2, 'b', 2, 'y')") }
        try store.write { try $0.execute(sql: "UPDATE trip SET name = NULL") }
        let token = try #require(try store.lastToken())
        try store.write { try $0.execute(sql: "UPDATE trip SET place = 'z'") }
        try store.deleteHistory(through: token)
        let found = try names(temporary)
        #expect(found.count == 2 && found[0]?.bytes.count == 18)
        #expect(found[1] == StableID(values: [.text("b"), .real(2)]))
        #expect(try store.audit().isClean)
    }

    @Test(arguments: [
        ("CREATE TABLE trip(name TEXT PRIMARY KEY, place TEXT UNIQUE)", [], ["place"]),
        ("CREATE TABLE trip(id INTEGER PRIMARY KEY, place TEXT UNIQUE)", [], ["id"]),
        ("CREATE TABLE trip(id INTEGER PRIMARY KEY, place TEXT UNIQUE)", ["id"], ["place"]),
    ]) func attachRefusesAnotherIdentityForPrimaryKeyRows(schema: String, from: [String], to: [String]) throws {
        let temporary = try TemporaryStore(schema, attach: nil)
        _ = try temporary.store.attach(request(from))
        let before = try temporary.store.trackedEntities()
        let error = #expect(throws: StoreError.self) { try temporary.store.attach(request(to)) }
        #expect(error?.code == .notTrackable)
        #expect(try temporary.store.trackedEntities() == before)
    }

    @Test func attachAcceptsFormerNamesWithoutARename() throws {
        let temporary = try TemporaryStore(Self.schema, attach: nil)
        var request = AttachRequest()
        request.formerNames = ["trip": ["journey"]]
        request.formerColumnNames = ["trip": ["start": ["start_date"]]]
        let attached = try temporary.store.attach(request).attached
        #expect(attached.map(\.formerNames) == [["journey"]])
        #expect(attached[0].column(named: "start_date")?.name == "start")
        #expect(try temporary.store.attach(request).changed == [])
        request.formerColumnNames = ["Trip": ["NAME": ["title"]]]
        #expect(try temporary.store.attach(request).changed == ["trip"])
        #expect(try temporary.store.trackedEntities()[0].column(named: "title")?.name == "name")
        for former in ["place", "trip"] {
            request.formerNames = ["trip": former == "trip" ? ["trip"] : []]
            request.formerColumnNames = ["trip": ["name": former == "trip" ? [] : [former]]]
            #expect(throws: StoreError.self) { try temporary.store.attach(request) }
        }
    }

    @Test func theHistoryKeepsOldValuesFromTheRequestOn() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO trip VALUES (1, 'a', 1, 'x'), (2, 'b', 2, 'y')")
        try temporary.raw("UPDATE trip SET id = 7, place = 'z' WHERE id = 1; DELETE FROM trip WHERE id = 2")
        let before = try temporary.changes()
        var request = AttachRequest()
        request.keepsOldValues = true
        #expect(try temporary.store.attach(request).changed == [])
        request.tables = ["trip"]
        #expect(try temporary.store.attach(request).changed == ["trip"])
        #expect(try temporary.changes() == before)
        try temporary.raw("UPDATE trip SET place = 'w'; DELETE FROM trip")
        #expect(
            try temporary.changes().suffix(2) == [
                #"update trip#7 place="w" was place="z""#, #"delete trip#7 name="a" place="w" start=1.0"#,
            ])
    }
}
