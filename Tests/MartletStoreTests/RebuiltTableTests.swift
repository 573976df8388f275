import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Tables that a program drops and recreates.
@Suite struct RebuiltTableTests {
    private static let schema = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT);
        CREATE TABLE part(id INTEGER PRIMARY KEY, item INT REFERENCES item(id) ON DELETE CASCADE);
        INSERT INTO item VALUES (1, 'one', 10), (2, 'two', 20);
        INSERT INTO part VALUES (1, 1), (2, 2);
        """

    private static let newUnderOtherName = """
        PRAGMA foreign_keys = OFF; BEGIN;
        CREATE TABLE item_new(id INTEGER PRIMARY KEY, name TEXT NOT NULL, size TEXT, extra DEFAULT 5);
        INSERT INTO item_new(id, name, size) SELECT id, name, size FROM item;
        DROP TABLE item;
        ALTER TABLE item_new RENAME TO item; COMMIT
        """

    private static let oldUnderOtherName = """
        PRAGMA legacy_alter_table = ON; BEGIN;
        ALTER TABLE item RENAME TO item_old;
        CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, size TEXT, extra DEFAULT 5);
        INSERT INTO item(id, name, size) SELECT id, name, size FROM item_old;
        DROP TABLE item_old; COMMIT; PRAGMA legacy_alter_table = OFF
        """

    @Test(arguments: SchemaChangeTests.Way.allCases.filter { $0 != .own }, [newUnderOtherName, oldUnderOtherName])
    func p37aRebuiltTableLogsNoChangesAndKeepsItsChildren(_ way: SchemaChangeTests.Way, _ script: String)
        throws
    {
        let temporary = try TemporaryStore(Self.schema)
        let before = try temporary.store.identities(of: "item")
        try way.run(script, temporary)
        #expect(try temporary.changes().isEmpty)
        try temporary.raw("UPDATE item SET size = 'L' WHERE id = 1; DELETE FROM part WHERE id = 2")
        #expect(try temporary.changes() == [#"update item#1 size="L""#, "delete part#2"])
        #expect(try temporary.store.identities(of: "item") == before)
        #expect(try temporary.lines("SELECT count(*) FROM part") == ["1"])
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    @Test(arguments: ForeignProgram.allCases)
    func p37aRecreatedTableWithOtherRowsIsCompared(_ program: ForeignProgram) throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.run(
            program,
            """
            DROP TABLE item; CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT);
            INSERT INTO item VALUES (2, 'two', 20), (3, 'three', 30);
            """)
        #expect(try temporary.changes() == ["delete item#1", #"insert item#3 name="three" size=30"#])
        #expect(try temporary.store.audit().isClean)
    }

    @Test func p37aTableThatComesBackLaterIsTrackedAgain() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .impatient)
        try temporary.run(.shell, "DROP TABLE item")
        #expect(try temporary.changes().isEmpty)
        #expect(
            try temporary.store.lostEntities().map { [$0.name, $0.reason] } == [["item", "The table was dropped."]])
        #expect(try temporary.store.trackedEntities().map(\.name) == ["part"])
        try temporary.run(
            .shell,
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT); INSERT INTO item VALUES (1, 'one', 10)")
        #expect(try temporary.changes() == ["delete item#2"])
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    /// Each statement is a transaction of its own, and the store reads the history after each one.
    @Test(arguments: [
        ["INSERT INTO item SELECT * FROM item_copy", "DROP TABLE item_copy"],
        [
            "INSERT INTO item SELECT * FROM item_copy WHERE id = 2",
            "INSERT INTO item SELECT * FROM item_copy WHERE id = 1",
        ],
        ["INSERT INTO item VALUES (3, 'three', 30)", "INSERT INTO item SELECT * FROM item_copy"],
    ])
    func p114aTableThatIsRefilledStepByStepKeepsItsRows(_ steps: [String]) throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        let before = try temporary.store.identities(of: "item")
        let all =
            [
                "CREATE TABLE item_copy(id INTEGER PRIMARY KEY, name TEXT, size INT)",
                "INSERT INTO item_copy SELECT * FROM item", "DROP TABLE item",
                "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)",
            ] + steps + ["UPDATE item SET size = 11 WHERE id = 1"]
        for step in all {
            try temporary.run(.shell, "PRAGMA foreign_keys = OFF; \(step)")
            _ = try temporary.changes()
        }
        let expected = ["update item#1 size=11"]
        let isNew = steps[0].contains("three")
        #expect(try temporary.changes() == (isNew ? [#"insert item#3 name="three" size=30"#] : []) + expected)
        #expect(try temporary.store.identities(of: "item") == before)
        #expect(try temporary.store.lostEntities().isEmpty)
        #expect(try temporary.store.audit().isClean)
    }

    /// It was gone for longer than its rows would be awaited.
    @Test func p237aTableThatIsRefilledLaterKeepsItsRows() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        let before = try temporary.store.identities(of: "item")
        try temporary.run(.shell, "PRAGMA foreign_keys = OFF; DROP TABLE item")
        #expect(try temporary.changes().isEmpty)
        try passTime(temporary)
        #expect(try temporary.changes().isEmpty)
        for step in [
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)", "INSERT INTO item VALUES (2, 'two', 20)",
            "INSERT INTO item VALUES (1, 'one', 10)",
        ] {
            try temporary.run(.shell, step)
            #expect(try temporary.changes().isEmpty)
        }
        #expect(try temporary.store.identities(of: "item") == before)
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    /// Meanwhile, a virtual table had its name.
    @Test func aTableThatIsRefilledAfterAVirtualTableHadItsNameKeepsItsRows() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        let before = try temporary.store.identities(of: "item")
        for step in [
            "DROP TABLE item", "CREATE VIRTUAL TABLE item USING fts5(name)", "DROP TABLE item",
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT); INSERT INTO item VALUES (2, 'two', 20)",
            "INSERT INTO item VALUES (1, 'one', 10)",
        ] {
            try temporary.raw(step)
            #expect(try temporary.changes().isEmpty)
        }
        #expect(try temporary.store.identities(of: "item") == before)
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    /// Lets the wait have begun long ago.
    private func passTime(_ temporary: TemporaryStore, since event: String = "changed") throws {
        let isRecent = "SELECT value LIKE '%\"\(event)\":1%' FROM _martlet_meta WHERE key = 'remade_tables'"
        #expect(try temporary.lines(isRecent) == ["1"])
        try temporary.run(
            .shell,
            """
            UPDATE _martlet_meta SET value = replace(value, '"\(event)":1', '"\(event)":') WHERE key = 'remade_tables'
            """)
    }

    /// The transaction is done with the table.
    @Test func aRebuildWithFewerRowsInATransactionOfTheStoreDeletesTheOthers() throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO item VALUES (1, 'one'), (2, 'two')")
        try temporary.store.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE item_new(id INTEGER PRIMARY KEY, name TEXT);
                    INSERT INTO item_new SELECT * FROM item WHERE id = 2;
                    DROP TABLE item; ALTER TABLE item_new RENAME TO item;
                    """)
        }
        #expect(try temporary.store.lostEntities().isEmpty)
        #expect(try temporary.changes() == ["delete item#1"])
    }

    /// Rows that come and go meanwhile are not those that are missing.
    @Test func p237theWaitForMissingRowsEndsAlthoughOthersCome() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        try temporary.run(.shell, "DROP TABLE item")
        #expect(try temporary.changes().isEmpty)
        try temporary.run(
            .shell,
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT); INSERT INTO item VALUES (2, 'two', 20)
            """)
        #expect(try temporary.changes().isEmpty)
        try passTime(temporary)
        try temporary.run(.shell, "INSERT INTO item VALUES (3, 'three', 30)")
        #expect(try temporary.changes() == ["delete item#1", #"insert item#3 name="three" size=30"#])
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    /// A program that dropped the rows may keep adding others under their numbers.
    @Test func theWaitForMissingRowsEndsAlthoughTheyKeepComingBack() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        try temporary.run(
            .shell, "DROP TABLE item; CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)")
        #expect(try temporary.changes().isEmpty)
        try passTime(temporary, since: "since")
        try temporary.run(.shell, "INSERT INTO item VALUES (2, 'two', 20)")
        #expect(try temporary.changes() == ["delete item#1"])
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    /// As if the clock had been ahead when the rows were first missing.
    @Test func aClockThatIsSetBackDoesNotProlongTheWaitForRowsThatKeepComingBack() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        try temporary.run(
            .shell, "DROP TABLE item; CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)")
        #expect(try temporary.changes().isEmpty)
        try temporary.run(
            .shell,
            """
            UPDATE _martlet_meta SET value = replace(value, '"since":', '"since":9') WHERE key = 'remade_tables';
            INSERT INTO item VALUES (2, 'two', 20)
            """)
        #expect(try temporary.changes().isEmpty)
        try passTime(temporary, since: "since")
        #expect(try temporary.changes() == ["delete item#1"])
    }

    @Test func p196aClockThatIsSetBackDoesNotEndTheWaitForRows() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        try temporary.run(
            .shell, "DROP TABLE item; CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)")
        #expect(try temporary.changes().isEmpty)
        // As if the clock had been ahead when the table was created.
        try temporary.run(
            .shell,
            """
            UPDATE _martlet_meta SET value = replace(value, '"changed":', '"changed":9') WHERE key = 'remade_tables'
            """)
        let isAhead = #"SELECT value LIKE '%"changed":9%' FROM _martlet_meta WHERE key = 'remade_tables'"#
        #expect(try temporary.lines(isAhead) == ["1"])
        #expect(try temporary.changes().isEmpty)
        try temporary.run(.shell, "INSERT INTO item VALUES (1, 'one', 10), (2, 'two', 20)")
        #expect(try temporary.changes().isEmpty)
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    /// Before and after the patience for the return of its rows ends.
    @Test func p114aTableThatStaysEmptyLosesItsRows() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.run(
            .shell, "DROP TABLE item; CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)")
        #expect(try temporary.changes().isEmpty)
        #expect(try temporary.store.lostEntities().map(\.name) == ["item"])
        try temporary.store.close()
        SQLiteClock.advance()
        var configuration = StoreConfiguration()
        configuration.schemaPatience = .nanoseconds(1)
        let again = try Store(path: temporary.path, configuration: configuration)
        #expect(try again.fetchHistory().flatMap(\.changes).map(\.kind) == [.delete, .delete])
        #expect(try again.lostEntities().isEmpty)
    }

    /// A program attaches at each start. The table stays the one that it was.
    @Test func p195attachLeavesATableAloneWhoseRowsMayComeBack() throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .patient)
        try temporary.raw("INSERT INTO item VALUES (3, 'three', 30)")
        #expect(try temporary.changes().count == 1)
        try temporary.raw("DROP TABLE item; CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT)")
        _ = try temporary.changes()
        try temporary.raw("INSERT INTO item VALUES (3, 'three', 30)")
        let report = try temporary.store.attach()
        #expect(report.attached.isEmpty && report.alreadyTracked == ["item", "part"])
        // Settings that need no rows can be changed.
        var request = AttachRequest()
        request.uniquePolicies = ["ITEM": .keepOldest]
        #expect(try temporary.store.attach(request).changed == ["item"])
        try temporary.store.close()
        let again = try Store(path: temporary.path, configuration: .impatient)
        defer { try? again.close() }
        let entities = try again.trackedEntities()
        #expect(entities.map(\.id) == [1, 2] && entities.first?.uniquePolicy == .keepOldest)
        #expect(
            try again.fetchHistory().flatMap(\.changes).map(\.line) == [
                #"insert item#3 name="three" size=30"#, "delete item#1", "delete item#2",
            ])
    }

    @Test func p195theIdentityOfATableWhoseRowsMayComeBackIsNotChanged() throws {
        let table = "CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE)"
        let temporary = try TemporaryStore("\(table); INSERT INTO item VALUES (1, 'a')", configuration: .patient)
        try temporary.raw("DROP TABLE item; \(table)")
        var request = AttachRequest()
        request.identities = ["item": ["code"]]
        let error = #expect(throws: StoreError.self) { try temporary.store.attach(request) }
        #expect(error?.isRetriable == true)
        try temporary.raw("INSERT INTO item VALUES (1, 'a')")
        #expect(try temporary.store.attach(request).changed == ["item"])
        #expect(try temporary.changes().isEmpty)
    }

    /// The former table has an internal name then, which nobody can do anything about.
    @Test(arguments: ["part", "Part"]) func aTableThatWasAttachedAgainIsNotLost(_ name: String) throws {
        let temporary = try TemporaryStore(Self.schema, configuration: .impatient)
        try temporary.run(.shell, "DROP TABLE part; CREATE TABLE part(name TEXT)")
        _ = try temporary.changes()
        #expect(try temporary.store.read(Catalog.lostTables).keys.sorted() == ["part"])
        try temporary.run(.shell, "DROP TABLE part; CREATE TABLE \(name)(name TEXT PRIMARY KEY)")
        #expect(try temporary.store.attach().attached.map(\.name) == [name])
        #expect(try temporary.store.read(Catalog.lostTables).isEmpty)
        #expect(try temporary.store.lostEntities().isEmpty)
    }

    @Test(arguments: SchemaChangeTests.Way.allCases)
    func p37aTableRecreatedWithoutItsKeyIsLost(_ way: SchemaChangeTests.Way) throws {
        let temporary = try TemporaryStore(Self.schema)
        try way.run("DROP TABLE part; CREATE TABLE part(name TEXT); INSERT INTO part VALUES ('x')", temporary)
        #expect(try temporary.changes().filter { $0.contains("part") }.isEmpty)
        let lost = try temporary.store.lostEntities()
        #expect(lost.map(\.name) == ["part"])
        #expect(lost[0].reason.contains("INTEGER PRIMARY KEY"))
        #expect(try temporary.store.trackedEntities().map(\.name) == ["item"])
        // Once it has a key again, it can be attached under a new number.
        try temporary.run(.shell, "DROP TABLE part; CREATE TABLE part(name TEXT PRIMARY KEY)")
        let report = try temporary.store.attach()
        #expect(report.attached.map(\.name) == ["part"])
        #expect(report.attached.map(\.id) == [3])
        #expect(try temporary.store.lostEntities().isEmpty)
        try temporary.raw("INSERT INTO part VALUES ('x')")
        #expect(try temporary.changes().last == #"insert part name="x""#)
    }

    @Test func p37anotherTableMayTakeTheNameOfADroppedOne() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.run(
            .python, "DROP TABLE part; ALTER TABLE item RENAME TO part; INSERT INTO part VALUES (3, 'x', 1)")
        #expect(try temporary.changes() == [#"insert part#3 name="x" size=1"#])
        #expect(try temporary.store.trackedEntities().map(\.id) == [1])
    }

    @Test func p37alterRefusesAScriptThatBreaksAForeignKey() throws {
        let temporary = try TemporaryStore(Self.schema)
        #expect(throws: StoreError.self) { try temporary.store.alter(sql: "DELETE FROM item WHERE id = 1") }
        #expect(try temporary.lines("SELECT count(*) FROM item") == ["2"])
        #expect(try temporary.lines("PRAGMA foreign_keys") == ["1"])
    }
}
