import Foundation
import GRDB
import MartletAgent
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The doctor's findings on data that the user's triggers derive.
@Suite(.timeLimit(.minutes(5))) struct DerivedDoctorTests {
    private static let schema = """
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);
        CREATE VIRTUAL TABLE note_fts USING fts5(text, content=note, content_rowid=id);
        CREATE TRIGGER note_ai AFTER INSERT ON note
        BEGIN INSERT INTO note_fts(rowid, text) VALUES (new.id, new.text); END;
        CREATE VIRTUAL TABLE old_fts USING fts4(text);
        CREATE VIRTUAL TABLE box USING rtree(id, x0, x1);
        """
    private let directory: TemporaryDirectory
    private let bus = InMemoryBus(topic: "t", partitionCount: 1)

    init() throws { directory = try TemporaryDirectory() }

    private func node(_ name: String, more: String = "") throws -> TestNode {
        var request = AttachRequest()
        request.tables = ["note"]
        return try TestNode(name, bus: bus, directory: directory, schema: Self.schema + more, attach: request)
    }

    private func findings(_ node: TestNode) throws -> [Finding] {
        try StoreDoctor.examine(path: node.path).filter { $0.level != .ok && $0.check != "sqlite" }
    }

    @Test func p40DoctorNamesAFullTextIndexThatDiffersFromItsContent() throws {
        let node = try node("n")
        try node.write("INSERT INTO note(text) VALUES ('one')")
        #expect(try findings(node).isEmpty)
        try node.foreignWrite("DROP TRIGGER note_ai")
        try node.foreignWrite("INSERT INTO note(text) VALUES ('two')")
        let found = try findings(node)
        #expect(found.map(\.check) == ["indexes"])
        #expect(found.first?.message == "note_fts does not match its content.")
        let command = try #require(found.first?.remedy?.components(separatedBy: "run: ").last)
        // Run the remedy while the node's connections are open.
        _ = try ForeignProgram.launch("sh", ["-c", command], input: "")
        #expect(try findings(node).isEmpty)
        #expect(try node.rows("SELECT rowid FROM note_fts WHERE note_fts MATCH 'two'") == ["2"])
    }

    @Test func p158DoctorNamesConstraintsThatReadAnAssignedKey() throws {
        let schema = """
            CREATE TABLE settings(id INTEGER PRIMARY KEY CHECK (id = 1), theme TEXT);
            CREATE TABLE bill(Id INTEGER PRIMARY KEY, sum INTEGER CHECK (sum > 0), code TEXT AS ('B-' || id),
              name TEXT UNIQUE);
            CREATE UNIQUE INDEX bill_code ON bill(code);
            CREATE TABLE tag(name TEXT PRIMARY KEY, id INTEGER CHECK (id > 0));
            """
        let path = directory.path("numbered.sqlite")
        let store = try Store.create(path: path)
        try store.write { try $0.execute(sql: schema) }
        let warnings = try store.attach().warnings
        #expect(warnings.count == 3)
        #expect(warnings.contains { $0.hasPrefix("A CHECK of table settings reads id, which each node numbers") })
        #expect(warnings.contains { $0.contains("--identity settings=id") })
        #expect(warnings.contains { $0.hasPrefix("The unique index bill_code of table bill is made from Id,") })
        #expect(warnings.contains { $0.hasPrefix("Column code of table bill is made from Id,") })
        let found = try StoreDoctor.examine(path: path).filter { $0.check == "numbers" }
        #expect(found.map(\.level) == [.warning])
        #expect(found.first.map { finding in warnings.allSatisfy { finding.message.contains($0) } } ?? false)
    }

    /// The remedy of the warning works: with `id` as the identity, every node has the same row.
    @Test func p158ATableOfOneRowConvergesUnderItsOwnKey() throws {
        let schema = "CREATE TABLE settings(id INTEGER PRIMARY KEY CHECK (id = 1), theme TEXT)"
        var request = AttachRequest()
        request.identities = ["settings": ["id"]]
        let nodes = try ["a", "b"].map {
            try TestNode($0, bus: bus, directory: directory, schema: schema, attach: request)
        }
        #expect(try nodes[0].store.attach(request).warnings == [])
        for node in nodes { try node.write("INSERT INTO settings VALUES (1, '\(node.name)')") }
        try exchange(nodes)
        #expect(try nodes[0].rows("SELECT * FROM settings") == ["1|b"])
        #expect(try nodes[1].rows("SELECT * FROM settings") == ["1|b"])
    }

    @Test func p40DoctorNamesTriggersThatFailed() throws {
        let (a, b) = (
            try node("a"),
            try node(
                "b",
                more: """
                    CREATE TABLE once(text TEXT UNIQUE);
                    CREATE TRIGGER keeping AFTER INSERT ON note BEGIN INSERT INTO once VALUES (new.text); END;
                    CREATE TRIGGER checking BEFORE INSERT ON note BEGIN
                      INSERT INTO once SELECT RAISE(ABORT, 'no') WHERE new.text = 'bad';
                    END;
                    """)
        )
        try a.write("INSERT INTO note(text) VALUES ('x'), ('x')")
        try exchange([a, b])
        let found = try findings(b)
        #expect(found.map(\.check) == ["your triggers", "derived data"])
        #expect(found.first?.message.hasPrefix("Trigger checking of table note may refuse a row") == true)
        #expect(found.last?.message.contains("Trigger keeping of table note failed on 1 remote change") == true)
        #expect(try b.rows("SELECT count(*) FROM note") == ["2"])
    }
}
