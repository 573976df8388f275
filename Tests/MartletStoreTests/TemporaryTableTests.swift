import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// A program may create a temporary table on its store's connection that has the name of a tracked one.
@Suite struct TemporaryTableTests {
    private static let schema = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE tag(name TEXT PRIMARY KEY NOT NULL, note TEXT);
        INSERT INTO item VALUES (1, 'a'); INSERT INTO tag VALUES ('x', 'n');
        """

    private func store() throws -> TemporaryStore {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.store.database.write { db in
            for table in ["item", "tag"] {
                try db.execute(sql: "CREATE TEMP TABLE \(table) AS SELECT * FROM \(table) WHERE FALSE")
            }
        }
        return temporary
    }

    @Test func anAuditReadsTheTrackedTables() throws {
        let temporary = try store()
        #expect(try temporary.store.audit().isClean)
    }

    @Test func schemaChangesAreFollowedInTheTrackedTables() throws {
        let temporary = try store()
        try temporary.raw("ALTER TABLE item ADD COLUMN size INT; UPDATE item SET size = 1")
        #expect(try temporary.changes() == ["update item#1 size=1"])
        try temporary.raw("INSERT INTO item VALUES (2, 'b', 2); DROP TRIGGER _martlet_2_delete; DELETE FROM tag")
        #expect(try temporary.changes().dropFirst() == [#"insert item#2 name="b" size=2"#, #"delete tag name="x""#])
        #expect(try temporary.lines("SELECT name FROM temp.sqlite_schema WHERE type = 'trigger'").isEmpty)
    }

    @Test func theTrackedTableIsAttached() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)", attach: nil)
        try temporary.raw("INSERT INTO item VALUES (1, 'a')")
        try temporary.store.database.write { db in
            try db.execute(sql: "CREATE TEMP TABLE item(id INTEGER PRIMARY KEY, name TEXT)")
        }
        var request = AttachRequest()
        request.logsExistingRows = true
        #expect(try temporary.store.attach(request).existingRowCount == 1)
        try temporary.raw("INSERT INTO item VALUES (2, 'b')")
        #expect(try temporary.changes() == [#"insert item#1 name="a""#, #"insert item#2 name="b""#])
    }
}
