import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Notes of rows that a statement may displace hold for that statement alone.
@Suite struct StaleNoteTests {
    private static let schema = ReplaceTests.schema

    @Test func p38AStatementIgnoresNotesOfAnEarlierOne() throws {
        let temporary = try TemporaryStore(Self.schema)
        // A note that an earlier statement left, of a row that vanished unseen by any trigger.
        try temporary.raw("INSERT INTO _martlet_replaced(e, r, t) VALUES (1, 77, 1)")
        try temporary.raw("INSERT INTO item VALUES (4, 'd', 4, 4, NULL)")
        #expect(try temporary.changes() == [#"insert item#4 box=4 code="d" note=null place=4"#])
        #expect(try temporary.lines("SELECT count(*) FROM _martlet_replaced") == ["0"])
    }

    @Test(arguments: ["AFTER", "BEFORE"]) func p38AStatementOfATriggerIgnoresNotesOfTheOuterOne(_ when: String) throws {
        // It changes a column of a unique key, so that it reads notes itself.
        let temporary = try TemporaryStore(
            Self.schema + """
                CREATE TRIGGER nested \(when) INSERT ON item BEGIN
                  UPDATE item SET code = code || 'x' WHERE id = 3;
                END;
                """)
        try temporary.raw("REPLACE INTO item VALUES (9, 'a', 1, 2, NULL)")
        let deleted = try temporary.changes().filter { $0.hasPrefix("delete") }.sorted()
        #expect(deleted == ["delete item#1", "delete item#2"])
        #expect(try temporary.store.audit().isClean)
    }

    @Test(arguments: [false, true]) func p38AForeignKeyActionIgnoresNotesOfItsStatement(recursiveTriggers: Bool) throws
    {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE part(id INTEGER PRIMARY KEY, code TEXT UNIQUE, place INT UNIQUE,
              whole INT REFERENCES part(id) ON DELETE SET NULL, number INT, UNIQUE(whole, number));
            INSERT INTO part VALUES (1, 'a', 1, NULL, 1), (2, 'b', 2, NULL, 2), (3, 'c', 3, 1, 1), (4, 'd', 4, 2, 1);
            """)
        try temporary.run(
            .shell,
            """
            PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = \(recursiveTriggers ? "ON" : "OFF");
            REPLACE INTO part VALUES (9, 'a', 2, NULL, 9);
            """)
        // With recursive_triggers the delete trigger runs after the action, and may log a row once more, which is
        // harmless.
        let deleted = try temporary.changes().filter { $0.hasPrefix("delete") }
        #expect(Set(deleted) == ["delete part#1", "delete part#2"])
        #expect(recursiveTriggers || deleted.count == 2)
        #expect(try temporary.lines("SELECT id FROM part WHERE whole IS NULL ORDER BY id") == ["3", "4", "9"])
        #expect(try temporary.store.audit().isClean)
    }

    /// One statement has rows that are ignored and rows that displace others.
    @Test func p38EachRowOfAStatementDisplacesOnlyItsOwnConflicts() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw(
            """
            INSERT INTO item VALUES (20, 'a', 20, 1, NULL), (21, 'z', 21, 1, NULL), (22, 'b', 22, 1, NULL)
            ON CONFLICT(code) DO UPDATE SET id = excluded.id, note = 'moved';
            INSERT OR REPLACE INTO item VALUES (30, 'c', 20, 1, NULL);
            UPDATE OR REPLACE item SET box = 1, place = 2 WHERE id IN (20, 21);
            """)
        #expect(try temporary.lines("SELECT id FROM item ORDER BY id") == ["21", "30"])
        let deleted = try temporary.changes().filter { $0.hasPrefix("delete") }.sorted()
        #expect(deleted == ["delete item#20", "delete item#22", "delete item#3"])
        #expect(try temporary.store.audit().isClean)
        // One key ignores the new row, the other replaces the existing one: a row that conflicts with an ignored row is
        // noted, and stays.
        let mixed = try TemporaryStore(
            """
            CREATE TABLE seat(id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT IGNORE,
             place INT UNIQUE ON CONFLICT REPLACE);
            INSERT INTO seat VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
            """)
        try mixed.raw("INSERT INTO seat VALUES (10, 'a', 9), (11, 'x', 2), (12, 'c', 8), (13, 'y', 11), (14, 'z', 9)")
        #expect(try mixed.lines("SELECT id FROM seat ORDER BY id") == ["1", "3", "11", "13", "14"])
        #expect(try mixed.changes().filter { $0.hasPrefix("delete") } == ["delete seat#2"])
        #expect(try mixed.store.audit().isClean)
    }
}
