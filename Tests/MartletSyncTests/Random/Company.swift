import GRDB
import MartletStore
import MartletTestSupport

/// A schema with every kind of identity and reference that rows can have, and a description of the tables' contents
/// that is equal on every node.
enum Company {
    static let schema = """
        CREATE TABLE person(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, score REAL,
          boss INTEGER REFERENCES person(id) ON DELETE SET NULL);
        CREATE TABLE project(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, title TEXT,
          owner INTEGER REFERENCES person(id) ON DELETE SET NULL);
        CREATE TABLE tag(name TEXT PRIMARY KEY NOT NULL, color TEXT,
          parent TEXT REFERENCES tag(name) ON DELETE SET NULL ON UPDATE CASCADE) WITHOUT ROWID;
        CREATE TABLE task(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT,
          project INTEGER NOT NULL REFERENCES project(id) ON DELETE CASCADE ON UPDATE CASCADE,
          assignee INTEGER REFERENCES person(id) ON DELETE SET NULL,
          label TEXT REFERENCES tag(name) ON DELETE SET NULL ON UPDATE CASCADE);
        CREATE TABLE membership(person INTEGER NOT NULL REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE,
          project INTEGER NOT NULL REFERENCES project(id) ON DELETE CASCADE ON UPDATE CASCADE, role TEXT,
          PRIMARY KEY(person, project));
        CREATE TABLE seat(id INTEGER PRIMARY KEY, place TEXT UNIQUE, email TEXT UNIQUE,
          person INTEGER REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE);
        CREATE TABLE profile(id INTEGER PRIMARY KEY REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE,
          bio TEXT);
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
        """

    static let request: AttachRequest = {
        var request = AttachRequest()
        request.identities = ["project": ["code"]]
        return request
    }()

    /// Other declared identities.
    static let changes: [AttachRequest] = [
        ["project": []], ["project": ["code"]], ["project": ["code"], "seat": []], ["project": [], "seat": ["place"]],
        ["project": ["code"], "seat": ["email"]],
    ].map { identities in
        var request = AttachRequest()
        request.identities = identities
        return request
    }

    static let renaming = "ALTER TABLE person RENAME COLUMN score TO points"

    static func isRenamed(_ node: TestNode) throws -> Bool {
        try node.rows("SELECT 1 FROM pragma_table_info('person') WHERE name = 'points'") == ["1"]
    }

    /// Every row as text, with its stable ID, and with the stable IDs of the rows that it refers to instead of integer
    /// keys.
    static func contents(_ node: TestNode) throws -> [String] {
        let score = try isRenamed(node) ? "points" : "score"
        return try node.store.database.read { db in
            let person = try side("person", db)
            let task = try side("task", db)
            let seat = try side("seat", db)
            func name(_ column: String) -> String {
                """
                CASE WHEN \(column) IS NULL THEN 'none'
                  ELSE coalesce((SELECT hex(ident) FROM \(person) WHERE row = \(column)), 'dangling') END
                """
            }
            func code(_ column: String) -> String {
                "coalesce((SELECT code FROM project WHERE id = \(column)), 'dangling')"
            }
            let queries = [
                """
                SELECT 'person', coalesce(hex(s.ident), 'no id ' || t.id), name, \(score), \(name("boss")) FROM person t
                  LEFT JOIN \(person) s ON s.row = t.id
                """,
                "SELECT 'project', code, title, \(name("owner")) FROM project",
                "SELECT 'tag', name, color, parent FROM tag",
                """
                SELECT 'task', coalesce(hex(s.ident), 'no id ' || t.id), title, \(code("project")),
                  \(name("assignee")), label
                FROM task t LEFT JOIN \(task) s ON s.row = t.id
                """,
                "SELECT 'membership', \(name("person")), \(code("project")), role FROM membership",
                """
                SELECT 'seat', coalesce(hex(s.ident), 'no id ' || t.id), place, email, \(name("person")) FROM seat t
                  LEFT JOIN \(seat) s ON s.row = t.id
                """,
                "SELECT 'profile', \(name("id")), bio FROM profile",
                "SELECT 'setting', key, quote(value) FROM setting",
            ]
            return try queries.flatMap { sql in
                try Row.fetchAll(db, sql: sql).map { row in
                    row.databaseValues.map { $0.isNull ? "NULL" : String(describing: $0) }.joined(separator: " | ")
                }
            }.sorted()
        }
    }

    private static func side(_ table: String, _ db: Database) throws -> String {
        InternalName.side(try Catalog.load(db)[table]?.id ?? 0)
    }
}
