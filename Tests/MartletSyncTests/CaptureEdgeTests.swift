import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows that refer to themselves or to nothing, and text that a file can't hold.
@Suite struct CaptureEdgeTests {
    private static let pages = """
        CREATE TABLE page(id TEXT PRIMARY KEY NOT NULL, parent TEXT REFERENCES page(id) ON UPDATE CASCADE, title TEXT);
        """

    @Test(arguments: [nil, ["page": ["code"]]] as [[String: [String]]?])
    func p48ARowThatRefersToItselfCanTakeAnExistingKey(_ identities: [String: [String]]?) throws {
        var request = AttachRequest()
        request.identities = identities ?? [:]
        let keyed = """
            CREATE TABLE page(number INTEGER PRIMARY KEY, code TEXT UNIQUE NOT NULL,
              parent TEXT REFERENCES page(code) ON UPDATE CASCADE, title TEXT);
            """
        let lab = try Lab(identities == nil ? Self.pages : keyed, request: request)
        let key = identities == nil ? "id" : "code"
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite(
            """
            INSERT INTO page(\(key), parent, title) VALUES ('0', '0', 'self'), ('1', NULL, 'other'), ('2', '0', 'child')
            """
        )
        try exchange([a, b])
        try a.foreignWrite("UPDATE OR REPLACE page SET \(key) = '1' WHERE \(key) = '0'", foreignKeys: true)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                page \(key)='1' parent='1' title='self'
                page \(key)='2' parent='1' title='child'
                """)
        // A row takes a key that no other row has, with another change in the same statement.
        try a.foreignWrite("UPDATE page SET \(key) = '7', title = 'both' WHERE \(key) = '1'", foreignKeys: true)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                page \(key)='2' parent='7' title='child'
                page \(key)='7' parent='7' title='both'
                """)
        try expectSame([a, b])
    }

    private static let books = """
        CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE book(id INTEGER PRIMARY KEY, author INT REFERENCES author(id), title TEXT);
        """

    @Test(arguments: [false, true]) func p49ARowThatNeverExistedIsNotReportedAsVanished(isEarlierVersion: Bool) throws {
        let lab = try Lab(Self.books)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO book VALUES (1, 7, 'early')")
        try exchange([a, b])
        if isEarlierVersion {
            try a.foreignWrite(OldFormat.sql(store: 7))
            try a.restart()
        }
        #expect(try a.store.audit() == AuditReport())
        #expect(try StoreSoundness.examine(a.path).vanished == [:])
        try exchange([a, b])
        #expect(try b.tombstones().isEmpty)
        try expectState(a, is: "book author=->? title='early'")
        try expectState(
            b,
            is: """
                book author=NULL title='early'
                pending missingTarget book author=->?
                """)
        // The row gets the ID that was reserved for it, so that rows that wait for it find it.
        try a.foreignWrite("INSERT INTO author VALUES (7, 'late')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                author name='late'
                book author=->'late' title='early'
                """)
        let author = try a.entity("author")
        #expect(try a.withContext { db, context in try !context.numbers.isReserved(db, author, row: 7) })
        try expectSame([a, b])
        // From then on it is a row like any other.
        try a.foreignWrite("DELETE FROM author")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                book author=NULL title='early'
                pending missingTarget book author=->?
                """)
    }

    @Test func p49ARowInsertedUnseenGetsItsReservedID() throws {
        let lab = try AntiEntropyLab(Self.books)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.node.foreignWrite("INSERT INTO book VALUES (1, 7, 'early')")
        try exchange([a.node, b.node])
        try a.damage("INSERT INTO author VALUES (7, 'late')")
        #expect(try a.node.store.audit().appeared == ["author": 1])
        try exchange([a.node, b.node])
        try expectBoth(
            a.node, b.node,
            are: """
                author name='late'
                book author=->'late' title='early'
                """)
        try expectSame([a.node, b.node])
    }

    @Test(arguments: ["CAST(x'61ff' AS TEXT)", "CAST(x'eda080' AS TEXT)", "'key' || char(65534)", "char(65535)"])
    func p50TextThatAUTF16FileCannotHoldIsPending(_ text: String) throws {
        let schema = "CREATE TABLE word(text TEXT PRIMARY KEY NOT NULL, note TEXT)"
        let lab = try Lab(schema)
        let a = try lab.node("a")
        let wide = lab.directory.path("wide.sqlite")
        try ForeignProgram.shell.run("PRAGMA encoding = 'UTF-16';" + schema, on: wide)
        let b = try TestNode("b", bus: lab.bus, directory: lab.directory, schema: "", copyOf: wide)
        #expect(try b.rows("PRAGMA encoding") == ["UTF-16le"])
        try a.foreignWrite(
            """
            INSERT INTO word VALUES (\(text), 'key'), ('w\u{f6}rd \u{1f426}', 'valid'), ('v', \(text));
            INSERT INTO word VALUES ('u', 'before');
            """)
        // These are the texts that b's encoding would turn such text into.
        try b.foreignWrite(
            "INSERT INTO word VALUES (CAST(x'fdff' AS TEXT), 'of b'), (CAST(x'6100fdff' AS TEXT), 'of b')")
        try exchange([a, b])
        #expect(try a.rows("SELECT count(*) FROM word") == ["6"])
        #expect(try b.rows("SELECT count(*) FROM word WHERE note = 'of b'") == ["2"])
        #expect(try b.rows("SELECT note FROM word WHERE text LIKE 'w%'") == ["valid"])
        #expect(try b.rows("SELECT count(*) FROM word WHERE note = 'key'") == ["0"])
        let waiting = try b.store.parked()
        #expect(waiting.allSatisfy { $0.reason == .constraint && $0.detail == TextEncoding.refusal.message })
        #expect(!waiting.isEmpty)
        #expect(try b.store.audit().isClean)
        // Update rows that exist already.
        try a.foreignWrite("UPDATE word SET note = \(text) WHERE text = 'u'")
        try a.foreignWrite("UPDATE word SET note = 'changed' WHERE note = 'key'")
        try exchange([a, b])
        #expect(try b.rows("SELECT count(*) FROM word WHERE note = 'changed'") == ["0"])
        #expect(try b.rows("SELECT note FROM word WHERE text = 'u'") == ["before"])
        #expect(try a.rows("SELECT count(*) FROM word WHERE note = 'of b'") == ["2"])
        // No such text was taken for another row's, and corrected text arrives.
        try a.foreignWrite(
            "DELETE FROM word WHERE note = 'changed'; UPDATE word SET note = 'well' WHERE text IN ('u', 'v')")
        try exchange([a, b])
        _ = try b.engine.retryParked()
        #expect(try b.parked() == [])
        #expect(try b.rows("SELECT note FROM word WHERE text IN ('u', 'v')") == ["well", "well"])
        try expectSame([a, b])
    }
}
