import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that have migrated send the former names of renamed columns and tables, by which other nodes find theirs.
@Suite struct FormerNamesTests {
    let lab: Lab
    let early: TestNode
    let late: TestNode

    init() throws {
        lab = try Lab(
            """
            CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, start_date REAL, place TEXT);
            CREATE TABLE item(title TEXT PRIMARY KEY, trip INTEGER REFERENCES trip(id));
            """)
        early = try lab.node("early")
        late = try lab.node("late")
        try late.write("INSERT INTO trip(name, start_date) VALUES ('rome', 1)")
        try exchange([early, late])
    }

    private func migrate(_ node: TestNode, _ sql: String) throws { try node.store.alter(sql: sql) }

    @Test func aRenamedColumnArrivesUnderTheNameThatTheOtherNodeKnows() throws {
        try migrate(late, "ALTER TABLE trip RENAME COLUMN start_date TO startDate")
        try late.write("UPDATE trip SET startDate = 2; INSERT INTO trip(name, startDate) VALUES ('oslo', 3)")
        try exchange([early, late])
        try expectState(
            early,
            is: """
                trip name='oslo' start_date=3.0 place=NULL
                trip name='rome' start_date=2.0 place=NULL
                """)
        try early.write("UPDATE trip SET start_date = 4 WHERE name = 'rome'")
        try exchange([early, late])
        try migrate(early, "ALTER TABLE trip RENAME COLUMN start_date TO startDate")
        try expectBoth(
            early, late,
            are: """
                trip name='oslo' startDate=3.0 place=NULL
                trip name='rome' startDate=4.0 place=NULL
                """)
        try expectAgreement([early, late])
    }

    @Test func aColumnIsFoundByItsOldestName() throws {
        try migrate(
            late,
            "ALTER TABLE trip RENAME COLUMN start_date TO begin; ALTER TABLE trip RENAME COLUMN begin TO startDate")
        try late.write("UPDATE trip SET startDate = 2")
        try exchange([early, late])
        try expectState(early, is: "trip name='rome' start_date=2.0 place=NULL")
        try expectState(late, is: "trip name='rome' startDate=2.0 place=NULL")
    }

    @Test func aRenamedTableAndReferencesToItAreFound() throws {
        try migrate(late, "ALTER TABLE trip RENAME TO journey")
        try late.write(
            """
            INSERT INTO journey(name) VALUES ('oslo'); INSERT INTO item VALUES ('hat', last_insert_rowid());
            UPDATE journey SET place = 'x' WHERE name = 'rome'
            """)
        try exchange([early, late])
        try expectState(
            early,
            is: """
                item title='hat' trip=->'oslo'
                trip name='oslo' start_date=NULL place=NULL
                trip name='rome' start_date=1.0 place='x'
                """)
        try expectState(
            late,
            is: """
                item title='hat' trip=->'oslo'
                journey name='oslo' start_date=NULL place=NULL
                journey name='rome' start_date=1.0 place='x'
                """)
    }

    /// The other node can't know that a name now has another meaning, so the node that changed it warns.
    @Test func p62ColumnsThatExchangeTheirNamesAreReported() throws {
        #expect(try late.store.reusedNames() == [] && late.engine.reusedNames() == [])
        try late.foreignWrite(
            """
            ALTER TABLE trip RENAME COLUMN name TO other; ALTER TABLE trip RENAME COLUMN place TO name;
            ALTER TABLE trip RENAME COLUMN other TO place
            """)
        try late.write("UPDATE trip SET place = 'roma', name = 'italy'")
        let expected = [
            ReusedName(table: "trip", column: "place", formerOwner: "name"),
            ReusedName(table: "trip", column: "name", formerOwner: "place"),
        ]
        #expect(try late.engine.reusedNames() == expected && late.store.reusedNames() == expected)
        try exchange([early, late])
        // This is what the warning is about.
        try expectState(early, is: "trip name='italy' start_date=1.0 place='roma'")
        try expectState(late, is: "trip place='roma' start_date=1.0 name='italy'")
        #expect(try early.engine.reusedNames() == [])
        // The remedy: after the same change on the other node, the values are in the right columns.
        try early.foreignWrite(
            """
            ALTER TABLE trip RENAME COLUMN name TO other; ALTER TABLE trip RENAME COLUMN place TO name;
            ALTER TABLE trip RENAME COLUMN other TO place
            """)
        try late.write("UPDATE trip SET place = 'rome', name = 'italia'")
        try exchange([early, late])
        try expectBoth(early, late, are: "trip place='rome' start_date=1.0 name='italia'")
        try expectAgreement([early, late])
    }

    @Test func p62AReusedNameIsReported() throws {
        try migrate(late, "ALTER TABLE trip RENAME COLUMN place TO city")
        #expect(try late.store.reusedNames() == [])
        try migrate(late, "ALTER TABLE trip ADD COLUMN place TEXT")
        #expect(try late.store.reusedNames() == [ReusedName(table: "trip", column: "place", formerOwner: "city")])
        try migrate(late, "ALTER TABLE item RENAME TO thing; CREATE TABLE item(title TEXT PRIMARY KEY)")
        _ = try late.store.attach(.init())
        #expect(
            try late.store.reusedNames().filter { $0.column == nil }
                == [ReusedName(table: "item", column: nil, formerOwner: "thing")])
    }

    /// If a node doesn't know what a name meant, the change is pending.
    @Test func aReusedFormerNameRefersToTheColumnThatHasItNow() throws {
        try migrate(late, "ALTER TABLE trip RENAME COLUMN place TO city")
        try migrate(late, "ALTER TABLE trip ADD COLUMN place TEXT")
        try late.write("UPDATE trip SET city = 'c', place = 'p'")
        try late.write("UPDATE trip SET name = 'roma'")
        try exchange([early, late])
        try expectState(
            early,
            is: """
                trip name='roma' start_date=1.0 place=NULL
                pending unknownSchema
                """)
        try expectState(late, is: "trip name='roma' start_date=1.0 city='c' place='p'")
        #expect(try early.pendingMessages().map(\.text) == ["unknownSchema: column trip.city"])
        for sql in ["ALTER TABLE trip RENAME COLUMN place TO city", "ALTER TABLE trip ADD COLUMN place TEXT"] {
            try migrate(early, sql)
        }
        try exchange([early, late])
        try expectBoth(early, late, are: "trip name='roma' start_date=1.0 city='c' place='p'")
        try expectAgreement([early, late])
    }
}
