import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes whose tables differ for a while in what a column refers to, or in its type: values that have another meaning
/// there, or would be converted, are pending.
@Suite struct SchemaMismatchTests {
    private func rebuild(_ table: String, _ columns: String, select: String = "*") -> String {
        """
        CREATE TABLE fresh(\(columns)); INSERT INTO fresh SELECT \(select) FROM \(table);
        DROP TABLE \(table); ALTER TABLE fresh RENAME TO \(table);
        """
    }

    /// Expects that the nodes agree, and that nothing is pending on any of them.
    private func expectSettled(_ nodes: [TestNode]) throws {
        try expectAgreement(nodes)
        for node in nodes {
            #expect(try node.parked() == [], "on \(node.name)")
            #expect(try node.pendingReferences() == [], "on \(node.name)")
        }
    }

    private static let books = "id INTEGER PRIMARY KEY, title TEXT, author INTEGER"
    private static let referring = "\(books) REFERENCES author(id)"

    /// One node declares the foreign key before the other one does.
    @Test func p150AReferenceIsTheNumberOfItsRowUntilAForeignKeyIsDeclared() throws {
        let lab = try Lab("CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE book(\(Self.books))")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO author VALUES (1, 'Ann'); INSERT INTO book VALUES (1, 'old', 1)")
        try exchange([a, b])
        try a.foreignWrite(rebuild("book", Self.referring))
        try b.write("INSERT INTO author VALUES (2, 'Ben')")
        try a.write("INSERT INTO author VALUES (2, 'Cid'); INSERT INTO book VALUES (2, 'new', 2)")
        try a.write("UPDATE book SET author = 2 WHERE id = 1")
        try exchange([a, b])
        for node in [a, b] {
            let books = try node.rows("SELECT title, name FROM book JOIN author ON author.id = author ORDER BY 1")
            #expect(books == ["new|Cid", "old|Cid"], "on \(node.name)")
        }
        try b.foreignWrite(rebuild("book", Self.referring))
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                author name='Ann'
                author name='Ben'
                author name='Cid'
                book title='new' author=->'Cid'
                book title='old' author=->'Cid'
                """)
        try expectSettled([a, b])
    }

    /// One node drops the foreign key before the other one does: its numbers mean other rows there.
    @Test func p150ANumberOfANodeWithoutTheForeignKeyIsNoRowElsewhere() throws {
        let lab = try Lab(
            "CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE book(\(Self.referring))")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO author VALUES (1, 'Ann')")
        try b.write("INSERT INTO author VALUES (1, 'Ben')")
        try exchange([a, b])
        try a.foreignWrite(rebuild("book", Self.books))
        try a.write("INSERT INTO book VALUES (1, 'x', 1)")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                author name='Ann'
                author name='Ben'
                book title='x' author=1
                """)
        try expectState(
            b,
            is: """
                author name='Ann'
                author name='Ben'
                book title='x' author=NULL
                pending missingTarget book author=1
                """)
        try b.foreignWrite(rebuild("book", Self.books))
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                author name='Ann'
                author name='Ben'
                book title='x' author=1
                """)
        try expectSettled([a, b])
    }

    /// A foreign key is dropped on all nodes: each node has the numbers of its own rows, under one timestamp.
    ///
    /// - Parameter isUpgraded: true for stores from before format 14, which did not record references.
    @Test(arguments: [false, true]) func p157AColumnThatWasAReferenceKeepsItsOwnNumbers(isUpgraded: Bool) throws {
        let lab = try AntiEntropyLab(
            "CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE book(\(Self.referring))")
        let (a, b) = (try lab.lab.node("a"), try lab.lab.node("b"))
        try a.write("INSERT INTO author VALUES (1, 'Ann'); INSERT INTO book VALUES (1, 'x', 1)")
        try b.write("INSERT INTO author VALUES (1, 'Ben'); INSERT INTO book VALUES (1, 'y', 1)")
        try exchange([a, b])
        for node in isUpgraded ? [a, b] : [] {
            try node.foreignWrite(OldFormat.sql(store: 13))
        }
        for node in [a, b] {
            if isUpgraded { try node.restart() }
            try node.foreignWrite(rebuild("book", Self.books))
        }
        try exchange([a, b])
        let nodes = [try lab.checked(a), try lab.checked(b)]
        try expectOwnNumbers(nodes)
        // Text has the same meaning on every node, so checks compare it.
        try a.write("UPDATE book SET author = 'Cid' WHERE title = 'x'")
        try exchange([a, b])
        try nodes[1].damage("UPDATE book SET author = 'Dan' WHERE title = 'x'")
        try check(nodes)
        #expect(try b.rows("SELECT author FROM book WHERE title = 'x'") == ["Cid"])
        #expect(try nodes[1].found() == ["otherValue repaired book.author"])
    }

    private func expectOwnNumbers(_ nodes: [CheckedNode], sourceLocation: SourceLocation = #_sourceLocation) throws {
        try check(nodes)
        try check(nodes.reversed())
        for node in nodes {
            let books = try node.node.rows("SELECT title, name FROM book JOIN author ON author.id = author ORDER BY 1")
            #expect(books == ["x|Ann", "y|Ben"], "on \(node.node.name)", sourceLocation: sourceLocation)
            #expect(try node.found() == [], "on \(node.node.name)", sourceLocation: sourceLocation)
        }
        let compared = try StoreComparison.compare(nodes.map(\.node.path))
        #expect(compared.differences == [], sourceLocation: sourceLocation)
        #expect(
            !compared.tables.isEmpty && compared.tables.allSatisfy { $0.skipped == nil }, sourceLocation: sourceLocation
        )
        #expect(nodes.allSatisfy { $0.progress.found == 0 && $0.progress.agreed > 0 }, sourceLocation: sourceLocation)
    }

    /// The IDs of rows in a table without an integer key are made from the rows that they refer to.
    @Test func p150RowsWithReferencesInTheirIDWaitUntilAForeignKeyIsDeclared() throws {
        let columns = "tag TEXT NOT NULL, item INTEGER NOT NULL"
        let late = "\(columns) REFERENCES item(id), PRIMARY KEY (tag, item)"
        let lab = try Lab(
            "CREATE TABLE item(id INTEGER PRIMARY KEY); CREATE TABLE tagged(\(columns), PRIMARY KEY (tag, item))")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.foreignWrite(rebuild("tagged", late))
        try a.write("INSERT INTO item VALUES (1); INSERT INTO tagged VALUES ('x', 1)")
        try exchange([a, b])
        #expect(try b.rows("SELECT * FROM tagged") == [])
        try b.foreignWrite(rebuild("tagged", late))
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item
                tagged tag='x' item=->NULL
                """)
        try expectSettled([a, b])
    }

    /// A table gets another kind of key on one node, and references to it get other values.
    @Test func p150AKeyOfAnotherKindWaitsForItsTable() throws {
        let lab = try Lab(
            "CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE book(\(Self.referring))")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO author VALUES (1, 'Ann'); INSERT INTO book VALUES (1, 'x', 1)")
        try exchange([a, b])
        let migration = """
            CREATE TABLE late(id TEXT PRIMARY KEY NOT NULL, name TEXT);
            INSERT INTO late SELECT 'u-' || name, name FROM author;
            CREATE TABLE fresh(id INTEGER PRIMARY KEY, title TEXT, author TEXT REFERENCES author(id));
            INSERT INTO fresh SELECT book.id, title, 'u-' || name FROM book LEFT JOIN author ON author.id = author;
            DROP TABLE book; DROP TABLE author; ALTER TABLE late RENAME TO author; ALTER TABLE fresh RENAME TO book;
            """
        try a.foreignWrite(migration)
        try exchange([a, b])
        #expect(try b.rows("PRAGMA foreign_key_check") == [])
        try b.foreignWrite(migration)
        try exchange([a, b])
        for node in [a, b] {
            #expect(try node.rows("SELECT title, author FROM book") == ["x|u-Ann"], "on \(node.name)")
        }
    }

    /// On one node, the column still has a numeric type, which would convert such values.
    @Test(arguments: [
        ("INTEGER", "TEXT", "'01234'"), ("INTEGER", "TEXT", "' 7'"), ("NUMERIC", "TEXT", "'1.50'"),
        ("REAL", "TEXT", "'12'"), ("REAL", "INTEGER", "9007199254740993"), ("TEXT", "REAL", "1.0 / 3"),
    ])
    func p151AValueThatTheTypeOfAColumnWouldChangeIsPending(_ early: String, _ late: String, _ value: String) throws {
        let lab = try Lab("CREATE TABLE place(id TEXT PRIMARY KEY NOT NULL, code \(early), note TEXT)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO place VALUES ('home', NULL, 'old')")
        try exchange([a, b])
        let migration = rebuild("place", "id TEXT PRIMARY KEY NOT NULL, code \(late), note TEXT")
        try a.foreignWrite(migration)
        try a.write("INSERT INTO place VALUES ('work', \(value), 'new')")
        try a.write("UPDATE place SET code = \(value) WHERE id = 'home'")
        try exchange([a, b])
        #expect(try b.rows("SELECT id, code, note FROM place") == ["home|NULL|old"])
        #expect(try b.parked() == ["constraint", "constraint"])
        try b.foreignWrite(migration)
        try exchange([a, b])
        let code = value.replacing("1.0 / 3", with: "0.3333333333333333")
        try expectBoth(
            a, b,
            are: """
                place id='home' code=\(code) note='old'
                place id='work' code=\(code) note='new'
                """)
        try expectSettled([a, b])
    }

    /// A value that can be recovered from the column's converted value is applied at once.
    @Test(arguments: [
        ("INTEGER", "TEXT", "'94110'"), ("INTEGER", "TEXT", "'N1'"), ("REAL", "TEXT", "'1.5'"),
        ("TEXT", "INTEGER", "94110"), ("TEXT", "REAL", "0.1"), ("INTEGER", "REAL", "2.0"),
    ])
    func p151AValueThatTheColumnConvertsReversiblyIsApplied(_ early: String, _ late: String, _ value: String) throws {
        let lab = try Lab("CREATE TABLE place(id TEXT PRIMARY KEY NOT NULL, code \(early))")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        let migration = rebuild("place", "id TEXT PRIMARY KEY NOT NULL, code \(late)")
        try a.foreignWrite(migration)
        try a.write("INSERT INTO place VALUES ('work', \(value))")
        try exchange([a, b])
        #expect(try b.rows("SELECT id FROM place") == ["work"])
        try b.foreignWrite(migration)
        try exchange([a, b])
        try expectBoth(a, b, are: "place id='work' code=\(value)")
        #expect(try a.store.conflicts() == [])
        try expectSettled([a, b])
    }

    /// Text that looks like a number identifies another row than the number does.
    @Test func p151ARowWhoseIDTheTypeOfAColumnWouldChangeIsPending() throws {
        let lab = try Lab("CREATE TABLE item(code INT PRIMARY KEY NOT NULL, note TEXT)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item VALUES (1, 'one')")
        try exchange([a, b])
        let migration = rebuild("item", "code TEXT PRIMARY KEY NOT NULL, note TEXT")
        try a.foreignWrite(migration)
        try a.write("UPDATE item SET note = 'edited' WHERE code = '1'; INSERT INTO item VALUES ('007', 'new')")
        try exchange([a, b])
        #expect(try b.rows("SELECT typeof(code) FROM item WHERE code IN (7, 1) AND note <> 'one'") == [])
        try b.foreignWrite(migration)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item code='007' note='new'
                item code='1' note='edited'
                """)
        try expectSettled([a, b])
    }

    /// Tools that empty a database drop its tables, including Martlet's, but leave views alone.
    @Test func p155AFileWhoseTablesWereAllDroppedIsAttachedAgain() throws {
        let lab = try Lab("CREATE TABLE note(id TEXT PRIMARY KEY NOT NULL, title TEXT)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO note VALUES ('x', 'old')")
        try exchange([a, b])
        let tables = try a.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        try a.foreignWrite(tables.map { "DROP TABLE IF EXISTS \"\($0)\"" }.joined(separator: ";"))
        #expect(try a.rows("SELECT count(*) FROM sqlite_master WHERE type = 'view'") == ["2"])
        let again = try lab.node("a")
        try again.write("INSERT INTO note VALUES ('y', 'new')")
        try exchange([again, b])
        try expectState(
            b,
            is: """
                note id='x' title='old'
                note id='y' title='new'
                """)
    }

    /// A tool empties all tables of the file, including Martlet's own.
    @Test func p161AFileWhoseTablesWereAllEmptiedIsAttachedAgain() throws {
        let lab = try Lab("CREATE TABLE note(id TEXT PRIMARY KEY NOT NULL, title TEXT)")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO note VALUES ('x', 'old')")
        try exchange([a, b])
        let tables = try a.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        try a.foreignWrite(tables.map { "DELETE FROM \"\($0)\"" }.joined(separator: ";"))
        let again = try TestNode("a", bus: lab.bus, directory: lab.directory, schema: "")
        #expect(try again.store.audit().isClean)
        try again.write("INSERT INTO note VALUES ('y', 'new')")
        try exchange([again, b])
        try expectBoth(
            again, b,
            are: """
                note id='x' title='old'
                note id='y' title='new'
                """)
    }

    /// One node attaches the table again under its new key, while the other node still inserts rows with IDs assigned
    /// by Martlet.
    @Test func p156ARowOfAnotherKindOfKeyIsNotMistakenForADeletedOne() throws {
        let lab = try Lab(
            """
            CREATE TABLE tag(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE);
            CREATE TABLE item(id INTEGER PRIMARY KEY, tag INTEGER NOT NULL REFERENCES tag(id), note TEXT);
            """)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try exchange([a, b])
        try a.foreignWrite(rebuild("tag", "code TEXT PRIMARY KEY NOT NULL", select: "code"))
        var request = AttachRequest()
        request.tables = ["tag"]
        _ = try a.store.attach(request)
        try a.restart()
        try b.write("INSERT INTO tag VALUES (1, 'K'); INSERT INTO item VALUES (1, 1, 'child')")
        try exchange([a, b])
        #expect(try a.rows("SELECT * FROM tag") == [])
        #expect(try a.parked() == ["missingTarget"])
        #expect(try a.pendingMessages().map(\.reason) == [.unknownSchema])
        #expect(try a.store.audit().isClean)
        try a.restart()
        try exchange([a, b])
        try expectState(
            b,
            is: """
                item tag=->'K' note='child'
                tag code='K'
                """)
    }
}
