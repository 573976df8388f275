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
        let notes = "SELECT text, name FROM note LEFT JOIN trip ON trip.id = note.trip"
        for node in [a, b] { #expect(try node.rows(notes) == ["early|NULL"], "on \(node.name)") }
        #expect(try StoreDigest.compute(a.store).entities == StoreDigest.compute(b.store).entities)
        #expect(try b.rows("SELECT name FROM trip WHERE id = 6") == [])
        try b.foreignWrite("INSERT OR IGNORE INTO trip(id, name) VALUES (6, 'Carpathians')")
        try exchange([a, b])
        for node in [a, b] { #expect(try node.rows(notes) == ["early|Carpathians"], "on \(node.name)") }
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
        for node in [a, b] {
            #expect(
                try node.rows("SELECT p.name, q.name FROM person p JOIN person q ON q.id = p.partner ORDER BY 1")
                    == ["Abe|Ann", "Ann|Abe", "Bea|Bea"], "on \(node.name)")
            #expect(
                try node.rows("SELECT text, name FROM note LEFT JOIN person ON person.id = note.person")
                    == ["early|NULL"], "on \(node.name)")
        }
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
        #expect(try b.parked() == ["unique"])
        #expect(try b.rows("SELECT name FROM owner WHERE id = 5") == ["Eve"])
        // Foreign keys are switched off.
        try b.foreignWrite("DELETE FROM owner")
        try exchange([a, b])
        for node in [a, b] {
            #expect(try node.rows("SELECT name FROM owner") == ["Rival"], "on \(node.name)")
            #expect(
                try node.rows("SELECT sku, name FROM item LEFT JOIN owner ON owner.id = owner") == ["x|NULL"],
                "on \(node.name)")
        }
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
        for node in [a, b] { #expect(try node.rows("SELECT name, size FROM doc") == ["x|500"], "on \(node.name)") }
        #expect(try strict.parked() == ["constraint"])
        try a.write("UPDATE doc SET size = 5")
        try exchange([a, b, strict])
        for node in [a, b, strict] {
            #expect(try node.rows("SELECT name, size FROM doc") == ["x|5"], "on \(node.name)")
        }
        #expect(try strict.parked() == [])
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
        for node in [a, maker, strict] {
            #expect(try node.rows("SELECT size, note FROM doc") == ["5|late"], "on \(node.name)")
        }
        #expect(try strict.parked() == [])
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
