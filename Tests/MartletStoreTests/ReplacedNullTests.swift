import MartletStore
import MartletTestSupport
import Testing

/// REPLACE puts the default in place of NULL where a column is NOT NULL, so that a row may be displaced whose key no
/// BEFORE trigger sees in the new one.
@Suite struct ReplacedNullTests {
    /// The column `code`, whose default is the key of the first row, further SQL, and the keys of the rows.
    struct Key: Sendable, CustomTestStringConvertible {
        var code: String
        var more = ""
        var values = ["'x'", "'y'"]

        var testDescription: String { "\(code) \(more)" }

        func schema() -> String {
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, code \(code), box INT DEFAULT 1, note TEXT DEFAULT 'n');
            \(more);
            INSERT INTO item(id, code) VALUES (1, \(values[0])), (2, \(values[1]));
            """
        }
    }

    static let keys = [
        Key(code: "TEXT NOT NULL DEFAULT 'x' UNIQUE"),
        Key(code: "TEXT NOT NULL DEFAULT x", more: "CREATE UNIQUE INDEX both ON item(box, code)"),
        Key(code: "TEXT NOT NULL DEFAULT 'x'", more: "CREATE UNIQUE INDEX some ON item(code) WHERE note IS NOT NULL"),
        Key(code: "TEXT NOT NULL DEFAULT 'X'", more: "CREATE UNIQUE INDEX low ON item(lower(code))"),
        Key(code: "TEXT NOT NULL DEFAULT 'X' COLLATE NOCASE UNIQUE"),
        Key(code: "INT NOT NULL DEFAULT '7' UNIQUE", values: ["7", "8"]),
        Key(code: "NOT NULL DEFAULT -1.0 UNIQUE", values: ["-1", "'y'"]),
        Key(code: "TEXT NOT NULL DEFAULT (lower('X') -- as all others\n) UNIQUE"),
    ]

    @Test(
        arguments: keys,
        [
            "INSERT OR REPLACE INTO item(id, code) VALUES (9, NULL)",
            "UPDATE OR REPLACE item SET code = NULL WHERE id = 2",
        ])
    func p194aRowDisplacedByADefaultInPlaceOfNullIsLogged(_ key: Key, _ sql: String) throws {
        for writer in ReplaceTests.Writer.allCases {
            let temporary = try TemporaryStore(key.schema())
            try ReplaceTests.write(sql, writer, temporary)
            #expect(try !temporary.lines("SELECT id FROM item").contains("1"), "\(writer)")
            let changes = try temporary.changes()
            #expect(changes.first == "delete item#1" && changes.count == 2, "\(writer)")
            #expect(try temporary.store.audit().isClean, "\(writer)")
        }
    }

    /// The clauses of the columns decide, not one of the statement.
    @Test func p194aColumnsOwnClauseMayDisplaceARowByItsDefault() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id TEXT PRIMARY KEY NOT NULL,
              code TEXT NOT NULL ON CONFLICT REPLACE DEFAULT 'x' UNIQUE ON CONFLICT REPLACE) WITHOUT ROWID;
            INSERT INTO item VALUES ('a', 'x'), ('b', 'y');
            """)
        func deletes() throws -> [String] { try temporary.changes().filter { $0.hasPrefix("delete") } }
        try temporary.raw("INSERT INTO item VALUES ('c', NULL)")
        #expect(try deletes() == [#"delete item id="a""#])
        try temporary.raw("UPDATE item SET code = NULL WHERE id = 'b'")
        #expect(try deletes() == [#"delete item id="a""#, #"delete item id="c""#])
        #expect(try temporary.lines("SELECT id, code FROM item") == [#""b"|"x""#])
        #expect(try temporary.store.audit().isClean)
    }

    /// The index treats 'active' and 'ACTIVE' as equal because the column does, in an expression, too.
    @Test(
        arguments: ReplaceTests.Writer.allCases,
        [
            "INSERT OR REPLACE INTO job VALUES (9, 'a', 'active')",
            "UPDATE OR REPLACE job SET state = 'Active' WHERE id = 2",
        ])
    func aColumnWithADefaultKeepsItsCollationInAnExpressionIndex(_ writer: ReplaceTests.Writer, _ sql: String) throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE job(id INTEGER PRIMARY KEY, queue TEXT, state TEXT NOT NULL DEFAULT 'idle' COLLATE NOCASE);
            CREATE UNIQUE INDEX active ON job(queue, CASE WHEN state = 'ACTIVE' THEN 1 END);
            INSERT INTO job VALUES (1, 'a', 'active'), (2, 'a', 'idle');
            """)
        try ReplaceTests.write(sql, writer, temporary)
        #expect(try !temporary.lines("SELECT id FROM job").contains("1"))
        let changes = try temporary.changes()
        #expect(changes.first == "delete job#1" && changes.count == 2)
        #expect(try temporary.store.audit().isClean)
    }

    /// A NULL that stays NULL equals nothing, and displaces nothing.
    @Test func aColumnThatMayBeNullDisplacesNoRowByItsDefault() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT DEFAULT 'x' UNIQUE);
            INSERT INTO item VALUES (1, 'x');
            """)
        try temporary.raw("INSERT OR REPLACE INTO item VALUES (9, NULL)")
        #expect(try temporary.changes() == ["insert item#9 code=null"])
    }

    @Test func p194aStoreOfAnEarlierVersionGetsTheTriggers() throws {
        let temporary = try TemporaryStore(Self.keys[0].schema())
        let triggers = "SELECT count(*) FROM sqlite_schema WHERE name = '_martlet_1_before_insert'"
        try temporary.raw(
            """
            DROP TRIGGER _martlet_1_before_insert; DELETE FROM _martlet_meta WHERE key = 'trigger_version';
            UPDATE _martlet_meta SET value = (SELECT schema_version FROM pragma_schema_version)
            WHERE key IN ('schema_version', 'trigger_schema');
            """)
        #expect(try temporary.lines(triggers) == ["0"])
        try Store(path: temporary.path).close()
        #expect(try temporary.lines(triggers) == ["1"])
        #expect(try temporary.changes().isEmpty)
    }

    /// It creates its own triggers again, and notes that it knows the schema.
    @Test func anEarlierProgramThatFollowedTheSchemaLeavesNoOldTriggers() throws {
        let temporary = try TemporaryStore(Self.keys[0].schema())
        let triggers = "SELECT count(*) FROM sqlite_schema WHERE name = '_martlet_1_before_insert'"
        let schema = "PRAGMA schema_version"
        try temporary.raw(
            """
            DROP TRIGGER _martlet_1_before_insert;
            UPDATE _martlet_meta SET value = (SELECT schema_version FROM pragma_schema_version)
            WHERE key = 'schema_version';
            """)
        try Store(path: temporary.path).close()
        #expect(try temporary.lines(triggers) == ["1"])
        // Opening it again finds nothing to do.
        let before = try temporary.lines(schema)
        try Store(path: temporary.path).close()
        #expect(try temporary.lines(schema) == before)
        #expect(
            try temporary.lines("SELECT value FROM _martlet_meta WHERE key IN ('schema_version', 'trigger_schema')")
                == before + before)
    }

    @Test func p186aCommentInADefaultLeavesTheStoreUsable() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY); INSERT INTO item VALUES (1)")
        try temporary.raw("ALTER TABLE item ADD COLUMN note DEFAULT ('a' -- the first one\n)")
        try temporary.raw("UPDATE item SET note = 'b'")
        #expect(try temporary.changes() == [#"update item#1 note="b""#])
    }
}
