import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Numbers that missing rows are to get, refused changes of rows that are there, and columns that are reset.
@Suite struct ReservedAndRefusedTests {
    // MARK: Numbers that a row refers to, and that no other row may get

    /// `AUTOINCREMENT` continues behind the highest number ever assigned, not behind the highest one in the table.
    @Test func p182TheNumberOfAMissingRowIsNotAssignedByAutoincrement() throws {
        let lab = try Lab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO trip(name) VALUES ('Alps')")
        try b.write("INSERT INTO trip(name) VALUES ('Baltic'), ('x'), ('x'), ('x'), ('x')")
        try b.write("DELETE FROM trip WHERE name = 'x'")
        // A program that knows its next number writes the child first.
        try b.foreignWrite("INSERT INTO note(trip, text) VALUES (6, 'early')")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                note trip=NULL text='early'
                trip name='Alps' budget=NULL
                trip name='Baltic' budget=NULL
                pending missingTarget note trip=->?
                """)
        try expectState(
            b,
            is: """
                note trip=->? text='early'
                trip name='Alps' budget=NULL
                trip name='Baltic' budget=NULL
                """)
        #expect(try StoreDigest.compute(a.store).entities == StoreDigest.compute(b.store).entities)
        #expect(try b.rows("SELECT name FROM trip WHERE id = 6") == [])
        try b.foreignWrite("INSERT OR IGNORE INTO trip(id, name) VALUES (6, 'Carpathians')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                note trip=->'Carpathians' text='early'
                trip name='Alps' budget=NULL
                trip name='Baltic' budget=NULL
                trip name='Carpathians' budget=NULL
                """)
    }

    /// The second row of a circle gets a number without a check.
    @Test func p182TheNumberOfAMissingRowIsNotGivenToARowOfACircle() throws {
        let lab = try Lab(
            """
            CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, partner INTEGER NOT NULL REFERENCES person(id));
            CREATE TABLE note(id INTEGER PRIMARY KEY, person INTEGER REFERENCES person(id), text TEXT);
            """)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.foreignWrite("INSERT INTO person VALUES (1, 'Ann', 2), (2, 'Abe', 1)")
        try b.foreignWrite("INSERT INTO person VALUES (1, 'Bea', 1)")
        try b.foreignWrite("INSERT INTO note VALUES (1, 3, 'early')")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                note person=NULL text='early'
                person name='Abe' partner=->'Ann'
                person name='Ann' partner=->'Abe'
                person name='Bea' partner=->'Bea'
                pending missingTarget note person=->?
                """)
        try expectState(
            b,
            is: """
                note person=->? text='early'
                person name='Abe' partner=->'Ann'
                person name='Ann' partner=->'Abe'
                person name='Bea' partner=->'Bea'
                """)
        #expect(try b.rows("SELECT name FROM person WHERE id = 3") == [])
        #expect(try StoreDigest.compute(a.store).entities == StoreDigest.compute(b.store).entities)
    }

    // MARK: Numbers of deleted rows whose references are not settled yet

    @Test(arguments: [nil, 2] as [Int?]) func p183ARowThatComesBackTakesNoNumberOfADeletedRowInALaterPart(slice: Int?)
        throws
    {
        let lab = try Lab(
            """
            CREATE TABLE owner(id INTEGER PRIMARY KEY, code TEXT UNIQUE, name TEXT);
            CREATE TABLE item(sku TEXT PRIMARY KEY NOT NULL, owner INTEGER REFERENCES owner(id));
            """)
        let a = try lab.node("a")
        let b = try lab.node("b") { if let slice { $0.enqueueLimits.changes = slice } }
        try a.write("INSERT INTO owner VALUES (5, 'c', 'Rival')")
        try b.write(
            """
            INSERT INTO owner VALUES
              (1, 'c', 'Ann'), (2, 'd', 'Ben'), (3, 'e', 'Cid'), (4, 'f', 'Dan'), (5, 'g', 'Eve');
            INSERT INTO item VALUES ('x', 5);
            """)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item sku='x' owner=->'g'
                owner code='c' name='Ann'
                owner code='d' name='Ben'
                owner code='e' name='Cid'
                owner code='f' name='Dan'
                owner code='g' name='Eve'
                pending unique owner code='c' name='Rival'
                """)
        #expect(try b.rows("SELECT name FROM owner WHERE id = 5") == ["Eve"])
        // Foreign keys are switched off.
        try b.foreignWrite("DELETE FROM owner")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item sku='x' owner=NULL
                owner code='c' name='Rival'
                pending missingTarget item sku='x' owner=->?
                """)
        #expect(try StoreDigest.compute(a.store).entities == StoreDigest.compute(b.store).entities)
    }

    // MARK: Changes that a table refuses for a row that it has

    private static let strict =
        "CREATE TABLE doc(name TEXT PRIMARY KEY NOT NULL, size INT CHECK (size < 100), note TEXT)"
    private static let lax = strict.replacing(" CHECK (size < 100)", with: "")

    /// The refused change is an insert that is newer than a delete that is yet to come.
    @Test func p184AnInsertThatATableRefusesStillOutlivesAnOlderDelete() throws {
        let lab = try Lab(Self.lax)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        let strict = try lab.node("strict", schema: Self.strict)
        try a.write("INSERT INTO doc VALUES ('x', 1, NULL)")
        try a.publish()
        try strict.consume()
        try a.write("DELETE FROM doc")
        // This node has seen neither, and inserts the row later.
        try b.write("INSERT INTO doc VALUES ('x', 500, NULL)")
        try b.publish()
        try strict.consume()
        #expect(try strict.rows("SELECT name, size FROM doc") == ["x|1"])
        #expect(try strict.parked() == ["constraint"])
        try exchange([a, b, strict])
        try expectBoth(a, b, are: "doc name='x' size=500 note=NULL")
        #expect(try strict.parked() == ["constraint"])
        try a.write("UPDATE doc SET size = 5")
        try exchange([a, b, strict])
        try expectAll([a, b, strict], are: "doc name='x' size=5 note=NULL")
    }

    /// The refused change is a row of a snapshot, whose columns have different stamps.
    @Test func p184TheColumnsOfARefusedSnapshotRowKeepTheirStamps() throws {
        let lab = try SnapshotLab(Self.lax, partitions: 1)
        let (a, maker) = (try lab.node("a"), try lab.node("maker"))
        let strict = try lab.node("strict", schema: Self.strict)
        try a.write("INSERT INTO doc VALUES ('x', 1, 'old')")
        try exchange([a, maker, strict])
        try maker.write("UPDATE doc SET note = 'early'")
        try a.write("UPDATE doc SET note = 'late'")
        try maker.write("UPDATE doc SET size = 500")
        try maker.publish()
        try maker.consume()
        try maker.makeSnapshot()
        try lab.prune()
        try strict.restart()
        try strict.consume()
        #expect(try strict.rows("SELECT size, note FROM doc") == ["1|old"])
        #expect(try strict.parked() == ["constraint"])
        try exchange([a, maker, strict])
        try maker.write("UPDATE doc SET size = 5")
        try exchange([a, maker, strict])
        try expectAll([a, maker, strict], are: "doc name='x' size=5 note='late'")
    }

    // MARK: Columns that are reset

    @Test(arguments: ["NOT NULL", ""]) func p185AColumnThatIsResetGetsTheTimeOfTheInsert(constraint: String) throws {
        let lab = try Lab(
            """
            CREATE TABLE doc(
              name TEXT PRIMARY KEY NOT NULL, size INT, made TEXT \(constraint) DEFAULT CURRENT_TIMESTAMP)
            """
        )
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        // This node has not added the column yet.
        let old = try lab.node("old", schema: "CREATE TABLE doc(name TEXT PRIMARY KEY NOT NULL, size INT)")
        try a.write("INSERT INTO doc VALUES ('x', 1, '2000-01-01 00:00:00')")
        try a.publish()
        try b.consume()
        try a.write("DELETE FROM doc")
        try old.write("INSERT INTO doc VALUES ('x', 2)")
        try old.publish()
        // One node receives the insert before the older delete, the other one after it.
        try b.consume()
        try a.publish()
        try b.consume()
        try a.consume()
        #expect(try a.rows("SELECT name, size, made > '2000-01-02' FROM doc") == ["x|2|1"])
        #expect(try b.rows("SELECT * FROM doc") == a.rows("SELECT * FROM doc"))
        #expect(try b.parked() == [])
    }
}
