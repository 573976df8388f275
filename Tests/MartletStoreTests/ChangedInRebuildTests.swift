import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Values that change while a table has no triggers: a program rebuilds and updates it before Martlet looks again.
@Suite struct ChangedInRebuildTests {
    /// How a program rebuilds a table.
    enum Rebuild: CaseIterable {
        case newUnderOtherName, oldUnderOtherName, restored

        /// - Parameters:
        ///   - table: the parenthesized definition, and the text behind it.
        ///   - columns: the columns of the new table; `values` are the expressions that fill them.
        func sql(_ name: String, _ table: String, _ columns: String, from values: String? = nil) -> String {
            let values = values ?? columns
            return switch self {
            case .newUnderOtherName:
                """
                PRAGMA foreign_keys = OFF; BEGIN; CREATE TABLE fresh\(table);
                INSERT INTO fresh(\(columns)) SELECT \(values) FROM \(name);
                DROP TABLE \(name); ALTER TABLE fresh RENAME TO \(name); COMMIT;
                """
            case .oldUnderOtherName:
                """
                PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; BEGIN; ALTER TABLE \(name) RENAME TO old;
                CREATE TABLE \(name)\(table); INSERT INTO \(name)(\(columns)) SELECT \(values) FROM old;
                DROP TABLE old; COMMIT; PRAGMA legacy_alter_table = OFF;
                """
            case .restored:
                """
                PRAGMA foreign_keys = OFF; CREATE TABLE backup AS SELECT * FROM \(name); DROP TABLE \(name);
                CREATE TABLE \(name)\(table); INSERT INTO \(name)(\(columns)) SELECT \(values) FROM backup;
                DROP TABLE backup;
                """
            }
        }
    }

    private static let item = "(id INTEGER PRIMARY KEY, name TEXT, size INT)"
    private static let schema = """
        CREATE TABLE item\(item);
        INSERT INTO item VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', NULL);
        """

    /// A column that was added earlier has a known value for rows without one in the log, which the new row differs
    /// from. The values in the column that the rebuild adds are logged before the row itself.
    @Test(arguments: ["id INTEGER PRIMARY KEY", "id TEXT PRIMARY KEY NOT NULL"], Rebuild.allCases)
    func aRowInsertedRightAfterARebuildThatAddsAColumnIsLoggedAsInserted(_ key: String, _ rebuild: Rebuild) throws {
        let temporary = try TemporaryStore("CREATE TABLE item(\(key), name TEXT); INSERT INTO item VALUES (1, 'one')")
        try temporary.raw("ALTER TABLE item ADD COLUMN size INT DEFAULT 5")
        #expect(try temporary.changes().isEmpty)
        try temporary.run(
            .shell,
            rebuild.sql("item", "(\(key), name TEXT, size INT DEFAULT 5, color TEXT)", "id, name, size")
                + "INSERT INTO item VALUES (2, 'two', 6, 'red')")
        let inserts = try temporary.changes().filter { $0.hasPrefix("insert item") }
        #expect(inserts.count == 1 && inserts[0].contains(#"color="red""#) && inserts[0].contains(#"name="two""#))
        #expect(try temporary.store.audit().isClean)
    }

    @Test(arguments: Rebuild.allCases, ForeignProgram.allCases)
    func p41theHistoryLogsAnUpdateRightAfterARebuild(_ rebuild: Rebuild, _ program: ForeignProgram) throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO item VALUES (4, 'four', 40); UPDATE item SET size = 11 WHERE id = 1")
        let token = try temporary.store.lastToken()
        try temporary.run(
            program,
            rebuild.sql("item", Self.item, "id, name, size")
                + """
                UPDATE item SET name = 'changed' WHERE id IN (1, 4); UPDATE item SET size = NULL WHERE id = 2;
                DELETE FROM item WHERE id = 3; INSERT INTO item VALUES (5, 'five', 50);
                """)
        let found = try Set(temporary.changes(after: token))
        #expect(
            found == [
                #"update item#1 name="changed""#, #"update item#4 name="changed""#, "update item#2 size=null",
                "delete item#3", #"insert item#5 name="five" size=50"#,
            ])
        // Another rebuild logs nothing again.
        let next = try temporary.store.lastToken()
        try temporary.run(program, rebuild.sql("item", Self.item, "id, name, size"))
        #expect(try temporary.changes(after: next).isEmpty)
        #expect(try temporary.store.audit().isClean)
    }

    @Test(arguments: Rebuild.allCases) func p41aChangeIsFoundAfterTheHistoryIsDeleted(_ rebuild: Rebuild) throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw(
            """
            INSERT INTO item VALUES (4, 'four', 40), (5, 'five', 50);
            UPDATE item SET name = 'second' WHERE id IN (2, 4);
            UPDATE item SET id = 6 WHERE id = 5; DELETE FROM item WHERE id = 3; INSERT INTO item VALUES (3, 'again', 3);
            """)
        _ = try temporary.changes()
        // All of it goes: an empty transaction keeps the place of the newest one (docs/decisions/0054).
        try temporary.raw("INSERT INTO item VALUES (9, 'nine', 9)")
        let token = try #require(try temporary.store.lastToken())
        _ = try temporary.store.deleteHistory(through: token)
        #expect(try temporary.store.fetchHistory().flatMap(\.changes).map(\.row) == [])
        try temporary.run(
            .shell,
            rebuild.sql("item", Self.item, "id, name, size")
                + "UPDATE item SET size = size + 1 WHERE id IN (1, 3, 4, 6, 9);")
        #expect(
            try temporary.changes(after: token) == [
                "update item#1 size=11", "update item#3 size=4", "update item#4 size=41", "update item#6 size=51",
                "update item#9 size=10",
            ])
    }

    @Test(arguments: Rebuild.allCases) func p41aRebuildWithOtherColumnTypesChangesNoValues(_ rebuild: Rebuild) throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE v(id INTEGER PRIMARY KEY, a INT, b TEXT, c REAL, d, e NUMERIC);
            INSERT INTO v VALUES (1, 10, '20', 3.0, 'x', 5), (2, -1, '2.5', 2.5, 7, 1.5),
               (3, NULL, NULL, NULL, NULL, NULL);
            """)
        try temporary.run(
            .shell,
            rebuild.sql("v", "(id INTEGER PRIMARY KEY, a TEXT, b NUMERIC, c INT, d TEXT, e REAL)", "id, a, b, c, d, e"))
        #expect(try temporary.changes().isEmpty)
        #expect(
            try temporary.lines("SELECT typeof(a), typeof(b), typeof(c), typeof(d), typeof(e) FROM v WHERE id < 3") == [
                #""text"|"integer"|"integer"|"text"|"real""#, #""text"|"real"|"real"|"text"|"real""#,
            ])
        // And back, into a STRICT table, with one value changed.
        try temporary.run(
            .shell,
            rebuild.sql(
                "v", "(id INTEGER PRIMARY KEY, a INTEGER, b ANY, c REAL, d TEXT, e REAL) STRICT", "id, a, b, c, d, e")
                + "UPDATE v SET a = 11 WHERE id = 1;")
        let changes = try temporary.changes()
        #expect(changes == ["update v#1 a=11"])
    }

    @Test(arguments: Rebuild.allCases) func p41aRebuildDistinguishesAddedAndDroppedColumns(_ rebuild: Rebuild) throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("ALTER TABLE item ADD COLUMN note TEXT DEFAULT 'n'")
        #expect(try temporary.changes().isEmpty)
        // The rebuild drops `size` and adds `colour`; then updates change two other columns.
        try temporary.run(
            .shell,
            rebuild.sql(
                "item", "(id INTEGER PRIMARY KEY, name TEXT, note TEXT DEFAULT 'n', colour TEXT DEFAULT 'red')",
                "id, name, note")
                    + """
                    UPDATE item SET colour = 'blue' WHERE id = 1; UPDATE item SET note = 'm' WHERE id = 2;
                    UPDATE item SET name = 'III' WHERE id = 3;
                    """)
        let first = try Set(temporary.changes())
        #expect(
            first == [
                #"update item#1 colour="blue""#, #"update item#2 note="m""#, #"update item#3 name="III""#,
            ])
        let token = try temporary.store.lastToken()
        // Rows that are older than the column have its default.
        try temporary.run(
            .shell,
            rebuild.sql(
                "item", "(id INTEGER PRIMARY KEY, name TEXT, note TEXT DEFAULT 'n', colour TEXT DEFAULT 'green')",
                "id, name, note, colour") + "UPDATE item SET colour = 'black' WHERE id = 3;")
        #expect(try temporary.changes(after: token) == [#"update item#3 colour="black""#])
    }

    @Test(arguments: Rebuild.allCases) func p41aRebuildIsComparedUnderEveryKindOfKey(_ rebuild: Rebuild) throws {
        var request = AttachRequest()
        request.identities = ["declared": ["code"]]
        let tables = [
            "declared": "(id INTEGER PRIMARY KEY, code TEXT UNIQUE, v INT, twice INT AS (v * 2))",
            "named": "(name TEXT PRIMARY KEY COLLATE NOCASE, v INT)",
            "pair": "(a INT, b TEXT, v INT, PRIMARY KEY(a, b)) WITHOUT ROWID",
            "range": "(id INTEGER PRIMARY KEY, low INT, high INT, v INT, CHECK (low <= high))",
            "child": "(id INTEGER PRIMARY KEY, parent INT REFERENCES declared(id), v INT)",
        ]
        let columns = [
            "declared": "id, code, v", "named": "name, v", "pair": "a, b, v", "range": "id, low, high, v",
            "child": "id, parent, v",
        ]
        let temporary = try TemporaryStore(
            tables.map { "CREATE TABLE \($0)\($1);" }.joined()
                + """
                INSERT INTO declared(id, code, v) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
                INSERT INTO named VALUES ('a', 1), ('b', 2); INSERT INTO pair VALUES (1, 'a', 1), (2, 'b', 2);
                INSERT INTO range VALUES (1, 1, 10, 0), (2, 2, 20, 0); INSERT INTO child VALUES (1, 1, 0), (2, 2, 0);
                """, attach: request)
        try temporary.raw(
            "UPDATE declared SET code = 'bb' WHERE id = 2; INSERT INTO declared(id, code, v) VALUES (4, 'd', 4)")
        let token = try temporary.store.lastToken()
        try temporary.run(
            .shell,
            tables.keys.sorted().map { rebuild.sql($0, tables[$0] ?? "", columns[$0] ?? "") }.joined()
                + """
                UPDATE declared SET v = 5 WHERE id = 1; UPDATE declared SET code = 'x' WHERE id IN (2);
                UPDATE declared SET code = 'y', v = 9 WHERE id = 4; UPDATE named SET v = 6 WHERE name = 'b';
                UPDATE pair SET v = 7 WHERE a = 1; UPDATE range SET low = 5 WHERE id = 2;
                UPDATE child SET parent = 3 WHERE id = 2;
                """)
        let found = try Set(temporary.changes(after: token))
        #expect(
            found == [
                "update declared#1 v=5", #"update declared#2 code="x" was code="bb""#,
                #"update declared#4 code="y" v=9 was code="d""#, "update named v=6", "update pair v=7",
                "update range#2 high=20 low=5", "update child#2 parent=3",
            ])
        #expect(try temporary.store.audit().isClean)
    }

    @Test func p41aTableThatLostATriggerIsCompared() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("DROP TRIGGER _martlet_1_update; UPDATE item SET name = 'unseen' WHERE id = 2")
        #expect(try temporary.changes() == [#"update item#2 name="unseen""#])
    }

    @Test(arguments: [false, true]) func p41rowsFromBeforeTheAttachAreCompared(_ logs: Bool) throws {
        var request = AttachRequest()
        request.logsExistingRows = logs
        let temporary = try TemporaryStore(Self.schema, attach: request)
        let token = try temporary.store.lastToken()
        try temporary.run(
            .shell,
            Rebuild.newUnderOtherName.sql("item", Self.item, "id, name, size")
                + "UPDATE item SET size = 21 WHERE id = 2;")
        #expect(try temporary.changes(after: token) == ["update item#2 size=21"])
    }

    @Test func p41aTableThatComesBackIsCompared() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("UPDATE item SET name = 'uno' WHERE id = 1")
        try temporary.run(.shell, "CREATE TABLE backup AS SELECT * FROM item; DROP TABLE item")
        _ = try temporary.changes()
        #expect(try temporary.store.lostEntities().count == 1)
        try temporary.run(
            .shell,
            "CREATE TABLE item\(Self.item); INSERT INTO item SELECT * FROM backup; "
                + "UPDATE item SET size = 0 WHERE id = 1")
        #expect(try temporary.changes() == [#"update item#1 name="uno""#, "update item#1 size=0"])
    }

    @Test func p41aStoreOfFormat9IsTrustedAsItIs() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("UPDATE item SET name = 'uno' WHERE id = 1")
        _ = try temporary.changes()
        try temporary.raw(OldFormat.sql(store: 9))
        let store = try Store(path: temporary.path)
        let token = try store.lastToken()
        try temporary.run(
            .shell,
            Rebuild.newUnderOtherName.sql("item", Self.item, "id, name, size")
                + "UPDATE item SET size = 21 WHERE id = 2;")
        let changes = try store.fetchHistory(HistoryQuery(after: token)).flatMap(\.changes).map(\.line)
        #expect(changes == ["update item#2 size=21"])
        try store.close()
    }
}
