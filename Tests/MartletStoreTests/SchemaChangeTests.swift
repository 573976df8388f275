import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Schema changes by other programs and by `Store.alter`.
@Suite struct SchemaChangeTests {
    private static let schema = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT);
        INSERT INTO item VALUES (1, 'one', 10), (2, 'two', 20);
        """

    enum Way: CaseIterable {
        case alter, shell, python, own

        func run(_ sql: String, _ temporary: TemporaryStore) throws {
            switch self {
            case .alter: try temporary.store.alter(sql: sql)
            case .shell: try temporary.run(.shell, sql)
            case .python: try temporary.run(.python, sql)
            case .own: try temporary.store.write { try $0.execute(sql: sql) }
            }
        }
    }

    @Test(arguments: Way.allCases)
    func p28addingAColumnLogsNoChanges(_ way: Way) throws {
        let temporary = try TemporaryStore(Self.schema)
        try way.run("ALTER TABLE item ADD COLUMN color TEXT NOT NULL DEFAULT 'red'", temporary)
        try way.run("ALTER TABLE item ADD COLUMN weight REAL DEFAULT 1", temporary)
        try way.run("ALTER TABLE item ADD COLUMN twice INT AS (size * 2)", temporary)
        #expect(try temporary.changes().isEmpty)
        try temporary.raw("INSERT INTO item(id) VALUES (3)")
        #expect(try temporary.changes() == [#"insert item#3 color="red" name=null size=null weight=1.0"#])
        #expect(
            try temporary.store.trackedEntities().map { $0.columns.map(\.name) } == [
                ["name", "size", "color", "weight"]
            ])
    }

    @Test(arguments: Way.allCases)
    func p37valuesOfAJustAddedColumnAreCaptured(_ way: Way) throws {
        let temporary = try TemporaryStore(Self.schema)
        try way.run(
            "ALTER TABLE item ADD COLUMN color TEXT DEFAULT 'red'; UPDATE item SET color = 'blue' WHERE id = 2;",
            temporary)
        #expect(try temporary.changes() == [#"update item#2 color="blue""#])
        #expect(try temporary.lines("SELECT count(*) FROM _martlet_log WHERE k = 2") == ["1"])
    }

    /// Without affinity, 1 and 1.0 are equal, but not the same value.
    @Test(arguments: Way.allCases)
    func aJustAddedColumnWithoutAffinityIsComparedWithItsDefaultByTypeToo(_ way: Way) throws {
        let temporary = try TemporaryStore(Self.schema)
        try way.run("ALTER TABLE item ADD COLUMN x DEFAULT 1; UPDATE item SET x = 1.0 WHERE id = 2;", temporary)
        #expect(try temporary.changes() == ["update item#2 x=1.0"])
    }

    @Test(arguments: Way.allCases)
    func p37renamedColumnsKeepTheirHistory(_ way: Way) throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO item VALUES (3, 'three', 30)")
        try way.run("ALTER TABLE item RENAME COLUMN name TO title", temporary)
        try temporary.raw("UPDATE item SET title = 'x' WHERE id = 3")
        #expect(
            try temporary.changes() == [#"insert item#3 size=30 title="three""#, #"update item#3 title="x""#])
        let column = try #require(try temporary.store.trackedEntities()[0].column(named: "name"))
        #expect(column.name == "title")
    }

    @Test(arguments: Way.allCases)
    func p37columnsAndTablesMaySwapTheirNames(_ way: Way) throws {
        var request = AttachRequest()
        request.identities = ["item": ["name"]]
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INT);
            CREATE TABLE other(id INTEGER PRIMARY KEY, label TEXT);
            """, attach: request)
        try way.run(
            """
            ALTER TABLE item RENAME COLUMN name TO tmp; ALTER TABLE item RENAME COLUMN size TO name;
            ALTER TABLE item RENAME COLUMN tmp TO size;
            ALTER TABLE item RENAME TO tmp; ALTER TABLE other RENAME TO item; ALTER TABLE tmp RENAME TO other;
            """, temporary)
        try temporary.raw("INSERT INTO item VALUES (1, 'l'); INSERT INTO other VALUES (2, 'n', 7)")
        #expect(try temporary.changes() == [#"insert item#1 label="l""#, #"insert other#2 name=7 size="n""#])
        #expect(try temporary.store.trackedEntities().map(\.identity) == [.columns(["size"]), .hidden])
    }

    @Test(arguments: Way.allCases)
    func p37renamedTablesKeepTheirHistory(_ way: Way) throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("UPDATE item SET size = 11 WHERE id = 1")
        try way.run("ALTER TABLE item RENAME TO \"the things\"", temporary)
        #expect(try temporary.changes() == ["update the things#1 size=11"])
        try temporary.raw("DELETE FROM \"the things\" WHERE id = 2")
        #expect(try temporary.changes() == ["update the things#1 size=11", "delete the things#2"])
        #expect(try temporary.store.trackedEntities().map(\.formerNames) == [["item"]])
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    @Test func p37alterDropsAColumn() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("UPDATE item SET size = 11 WHERE id = 1")
        try temporary.store.alter(sql: "ALTER TABLE item DROP COLUMN size; UPDATE item SET name = 'x' WHERE id = 1")
        try temporary.raw("UPDATE item SET name = 'y' WHERE id = 2")
        #expect(try temporary.changes().suffix(2) == [#"update item#1 name="x""#, #"update item#2 name="y""#])
        try temporary.store.alter(sql: "ALTER TABLE item ADD COLUMN size TEXT")
        try temporary.raw("UPDATE item SET size = 'big' WHERE id = 2")
        #expect(try temporary.changes().suffix(1) == [#"update item#2 size="big""#])
    }

    @Test func p37aForeignProgramCannotDropAColumn() throws {
        let temporary = try TemporaryStore(Self.schema)
        #expect(throws: ForeignProgram.Failure.self) { try temporary.run(.shell, "ALTER TABLE item DROP COLUMN size") }
        try temporary.raw("UPDATE item SET size = 11 WHERE id = 1")
        #expect(try temporary.changes() == ["update item#1 size=11"])
    }

    @Test func p37aFailedScriptChangesNothing() throws {
        let temporary = try TemporaryStore(Self.schema)
        #expect(throws: StoreError.self) {
            try temporary.store.alter(
                sql: "ALTER TABLE item DROP COLUMN size; ALTER TABLE item ADD COLUMN color; SELECT no_such_function()")
        }
        try temporary.raw("UPDATE item SET size = 11 WHERE id = 1")
        #expect(try temporary.changes() == ["update item#1 size=11"])
        #expect(throws: StoreError.self) { try temporary.store.alter(sql: "/* x */ -- y\n VACUUM") }
        #expect(throws: StoreError.self) { try temporary.store.alter(sql: "ALTER TABLE item ADD COLUMN x; ROLLBACK") }
        #expect(try temporary.store.trackedEntities()[0].columns.map(\.name) == ["name", "size"])
    }
}
