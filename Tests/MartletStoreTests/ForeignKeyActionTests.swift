import MartletStore
import MartletTestSupport
import Testing

/// Foreign-key actions run before the triggers of the statement that causes them, and fire the user's triggers on the
/// rows that they change.
@Suite struct ForeignKeyActionTests {
    /// A parent, a statement that changes the key that its children refer to, and the parent's row afterwards.
    struct Case: Sendable, CustomTestStringConvertible {
        var parent: String
        var statement: String
        var row: String

        var testDescription: String { parent }
    }

    static let cases = [
        Case(
            parent: "(name TEXT PRIMARY KEY NOT NULL, touched INT NOT NULL DEFAULT 0)",
            statement: "UPDATE parent SET name = 'b'", row: #""b"|1"#),
        Case(
            parent: "(name TEXT COLLATE NOCASE PRIMARY KEY, touched INT NOT NULL DEFAULT 0) WITHOUT ROWID",
            statement: "UPDATE parent SET name = 'b'", row: #""b"|1"#),
        Case(
            parent: "(id INTEGER PRIMARY KEY, name TEXT UNIQUE, touched INT NOT NULL DEFAULT 0)",
            statement: "UPDATE parent SET name = 'b', touched = 7", row: #""b"|8"#),
        Case(
            parent: "(name INTEGER PRIMARY KEY, touched INT NOT NULL DEFAULT 0)",
            statement: "UPDATE parent SET name = 2, touched = 7", row: "2|8"),
    ]

    /// The trigger of a child writes to the parent whose key is being changed.
    @Test(arguments: cases, ForeignProgram.allCases)
    func theLastChangeHasWhatATriggerOfAnActionWrote(_ example: Case, _ program: ForeignProgram) throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE parent\(example.parent);
            CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES parent(name) ON UPDATE CASCADE);
            CREATE TRIGGER touch AFTER UPDATE ON child BEGIN
              UPDATE parent SET touched = touched + 1 WHERE name = NEW.parent;
            END;
            INSERT INTO parent(name) VALUES (\(example.row.hasPrefix("2") ? "1" : "'a'"));
            INSERT INTO child SELECT 1, name FROM parent;
            """)
        try temporary.run(program, "PRAGMA foreign_keys = ON; \(example.statement)")
        #expect(try temporary.lines("SELECT name, touched FROM parent") == [example.row])
        let slot = try temporary.lines(
            """
            SELECT slot FROM _martlet_columns WHERE name = 'touched'
            AND entity = (SELECT id FROM _martlet_entities WHERE name = 'parent')
            """)
        let logged = try temporary.lines(
            """
            SELECT c\(slot[0]) FROM _martlet_log WHERE k = 2
            AND e = (SELECT id FROM _martlet_entities WHERE name = 'parent') ORDER BY id DESC LIMIT 1
            """)
        #expect(try logged == temporary.lines("SELECT touched FROM parent"))
    }
}
