import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Schema changes of other programs that a table can't be tracked with any more: the store stays usable.
@Suite struct UnusableSchemaTests {
    @Test func p186aRebuildThatAddsAnIntegerKeyKeepsTheStoreUsable() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(code TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE other(id INTEGER PRIMARY KEY, label TEXT);
            INSERT INTO item VALUES ('a', 'one');
            """)
        try temporary.raw(
            """
            CREATE TABLE fresh(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, name TEXT);
            INSERT INTO fresh(code, name) SELECT code, name FROM item;
            DROP TABLE item; ALTER TABLE fresh RENAME TO item; INSERT INTO other VALUES (1, 'x')
            """)
        #expect(try temporary.changes() == [#"insert other#1 label="x""#])
        try Store(path: temporary.path).close()
    }

    @Test func p186aTableMayTakeTheNameOfADroppedOneInOtherCase() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE other(id INTEGER PRIMARY KEY, label TEXT);
            """)
        try temporary.raw("DROP TABLE item; ALTER TABLE other RENAME TO Item")
        _ = try temporary.changes()
        try temporary.raw("INSERT INTO Item VALUES (1, 'x')")
        #expect(try temporary.changes() == [#"insert Item#1 label="x""#])
        try Store(path: temporary.path).close()
    }

    /// While the schema counts as unknown, each transaction follows it again, and an agent compares nothing.
    @Test func theSchemaIsKnownAfterAVirtualTableHasTakenTheNameOfADroppedOne() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
            CREATE TABLE other(id INTEGER PRIMARY KEY, label TEXT);
            """)
        try temporary.raw(
            "DROP TABLE note; CREATE VIRTUAL TABLE note USING fts5(body); INSERT INTO other VALUES (1, 'x')")
        #expect(try temporary.changes() == [#"insert other#1 label="x""#])
        // The next look finds what kind of table it is.
        try temporary.store.closeForeignTransactions()
        #expect(try !temporary.store.closeForeignTransactions())
        #expect(try temporary.store.lostEntities().map(\.name) == ["note"])
        try temporary.raw("DROP TABLE note; CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT)")
        try temporary.store.closeForeignTransactions()
        try temporary.raw("INSERT INTO note VALUES (1, 'y')")
        #expect(try temporary.changes().last == #"insert note#1 body="y""#)
    }

    /// Only its program has the function of the first view, and the table of the second one is gone.
    @Test(arguments: ["SELECT shout(label) AS body FROM other", "SELECT body FROM former"])
    func aViewThatCanNotBeReadMayTakeTheNameOfATable(_ query: String) throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
            CREATE TABLE other(id INTEGER PRIMARY KEY, label TEXT, note INTEGER REFERENCES note);
            """)
        try temporary.raw("DROP TABLE note; CREATE VIEW note AS \(query); INSERT INTO other(id, label) VALUES (1, 'x')")
        #expect(try temporary.changes() == [#"insert other#1 label="x" note=null"#])
        #expect(try temporary.store.lostEntities().map(\.name) == ["note"])
        try Store(path: temporary.path).close()
    }

    /// Only its program has the function, or the collation, of a new index. The table is tracked again without it, with
    /// the writes since then.
    @Test(arguments: ["shout(body)", "body COLLATE shout"])
    func aTableThatOnlyItsProgramCanWriteDoesNotStopTheOthers(_ indexed: String) throws {
        var configuration = StoreConfiguration()
        // Otherwise, the row that is deleted may still come back.
        configuration.schemaPatience = .zero
        let temporary = try TemporaryStore(
            """
            CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
            CREATE TABLE other(id INTEGER PRIMARY KEY, label TEXT);
            INSERT INTO note VALUES (1, 'a'), (2, 'b');
            """, configuration: configuration)
        let program = try DatabaseQueue(path: temporary.path)
        func run(_ sql: String) throws { try program.writeWithoutTransaction { try $0.execute(sql: sql) } }
        program.inDatabase { db in
            db.add(function: DatabaseFunction("shout", argumentCount: 1, pure: true) { $0[0] })
            db.add(collation: DatabaseCollation("shout") { $0.compare($1) })
        }
        try run("CREATE UNIQUE INDEX shouted ON note(\(indexed)); INSERT INTO other VALUES (1, 'x')")
        #expect(try temporary.changes() == [#"insert other#1 label="x""#])
        let lost = try temporary.store.lostEntities()
        #expect(lost.map(\.name) == ["note"] && lost.first?.reason.contains("shout") == true, "\(lost)")
        // Otherwise each transaction would look at the schema again.
        #expect(try !temporary.store.closeForeignTransactions())
        try run("UPDATE note SET body = 'c' WHERE id = 1; DELETE FROM note WHERE id = 2")
        try run("INSERT INTO note VALUES (3, 'd'); DROP INDEX shouted")
        try temporary.store.closeForeignTransactions()
        #expect(try temporary.store.lostEntities().isEmpty)
        #expect(
            try temporary.changes().suffix(3).sorted() == [
                "delete note#2", #"insert note#3 body="d""#, #"update note#1 body="c""#,
            ])
        try run("INSERT INTO note VALUES (4, 'e')")
        #expect(try temporary.changes().last == #"insert note#4 body="e""#)
        try program.close()
    }

    @Test func p186aTableThatOutgrowsTheLogDoesNotStopTheOthers() throws {
        let columns = (1...1993).map { "c\($0)" }.joined(separator: ", ")
        let temporary = try TemporaryStore(
            """
            CREATE TABLE wide(id INTEGER PRIMARY KEY, \(columns));
            CREATE TABLE other(id INTEGER PRIMARY KEY, label TEXT);
            """)
        #expect(try temporary.store.trackedEntities().count == 2)
        try temporary.raw(
            "ALTER TABLE wide ADD COLUMN x1; ALTER TABLE wide ADD COLUMN x2; INSERT INTO other VALUES (1, 'x')")
        #expect(try temporary.changes() == [#"insert other#1 label="x""#])
        try Store(path: temporary.path).close()
    }

    @Test func p186aColumnNameThatEqualsAnotherInUnicodeDoesNotEndTheProcess() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, \"caf\u{e9}\" TEXT)")
        try temporary.raw("ALTER TABLE item ADD COLUMN \"cafe\u{301}\" TEXT")
        #expect(throws: Never.self) { try temporary.changes() }
    }

    /// Each case: the name of a table, and of a unique index on some of its rows.
    @Test(arguments: [["whereabouts", "one"], ["place", "where_now"], ["place", "\"where\""], ["[where]", "one"]])
    func aPartialIndexOrItsTableMayHaveANameThatBeginsWithWhere(_ names: [String]) throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE \(names[0])(id INTEGER PRIMARY KEY, person TEXT, current INT)")
        let index = "CREATE UNIQUE INDEX \(names[1]) ON \(names[0])(person) WHERE current"
        try temporary.raw(
            "\(index); INSERT INTO \(names[0]) VALUES (1, 'a', 1), (2, 'a', 0);"
                + "INSERT OR REPLACE INTO \(names[0]) VALUES (3, 'a', 1)")
        #expect(try temporary.lines("SELECT id FROM \(names[0])") == ["2", "3"])
        _ = try temporary.changes()
        try temporary.raw("INSERT OR REPLACE INTO \(names[0]) VALUES (4, 'a', 1)")
        let changes = try temporary.changes()
        #expect(changes.filter { $0.hasPrefix("delete") }.map { $0.suffix(2) } == ["#1", "#3"])
        try Store(path: temporary.path).close()
        // A table that has the index from the beginning.
        let attached = try TemporaryStore(
            "CREATE TABLE \(names[0])(id INTEGER PRIMARY KEY, person TEXT, current INT); \(index)")
        #expect(try attached.store.trackedEntities().count == 1)
    }

    /// The reverse: the rows had a declared identity beside the integer key.
    @Test func p186aRebuildThatDropsTheIntegerKeyKeepsTheStoreUsable() throws {
        var request = AttachRequest()
        request.identities = ["item": ["code"]]
        let folder = try TemporaryFolder()
        let path = folder.path("store.db")
        try ForeignProgram.shell.run(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, name TEXT);
            INSERT INTO item(code, name) VALUES ('k', 'one');
            """, on: path)
        let store = try Store.create(path: path)
        _ = try store.attach(request)
        try store.close()
        try ForeignProgram.shell.run(
            """
            CREATE TABLE fresh(code TEXT PRIMARY KEY NOT NULL, name TEXT);
            INSERT INTO fresh SELECT code, name FROM item;
            DROP TABLE item; ALTER TABLE fresh RENAME TO item;
            """, on: path)
        var configuration = StoreConfiguration()
        configuration.schemaPatience = .nanoseconds(1)
        let again = try Store(path: path, configuration: configuration)
        defer { try? again.close() }
        let lost = try again.lostEntities()
        #expect(lost.map(\.name) == ["item"])
        #expect(lost.first?.reason == "The table no longer has its INTEGER PRIMARY KEY. Attach it again.")
        _ = try again.attach(request)
        #expect(try again.lostEntities().isEmpty)
    }
}
