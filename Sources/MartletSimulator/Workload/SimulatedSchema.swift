import MartletStore

/// The simulated tables, and their schema changes.
package struct SimulatedSchema: Sendable {
    struct Upgrade: Sendable {
        var sql: String
        /// A query that returns a row once the change was made.
        var probe: String
        /// True if it creates a table to be tracked.
        var attaches = false
        /// Quoted names that must exist for the change.
        var needs: [String] = []
        /// The column that it renames.
        var renames: (table: String, from: String, to: String)?
    }

    package var sql: String
    var identities: [String: [String]] = [:]
    /// Applied in this order on each node.
    var upgrades: [Upgrade] = []

    /// True if statements are generated from the schema, and the oracle may not know all of its rules.
    var isGenerated = false
    /// The complete SQL, if parts of it can be left out.
    private var source: String?
    /// The number of parts that can be left out.
    var partCount: Int { source.map { SchemaText($0).count } ?? 0 }

    /// The schemas of which each seed uses one. The fewer tables there are, the more changes collide in them.
    static let companies: [SimulatedSchema] =
        [
            [.person, .project, .tag, .task, .membership, .seat, .profile, .setting],
            [.person, .project, .tag, .task],
            [.person, .project, .membership, .setting],
            [.person, .seat, .profile],
            [.tag, .setting],
            [.project, .person, .task, .tag, .seat],
        ].map(company)

    private init(sql: String) { self.sql = sql }

    /// Creates a user's schema, or one generated from a seed.
    init(sql: String, identities: [String: [String]] = [:], without parts: [Int]) {
        source = sql
        self.sql = parts.isEmpty ? sql : SchemaText(sql).text(without: parts)
        self.identities = identities
        isGenerated = true
    }

    var request: AttachRequest {
        var request = AttachRequest()
        request.identities = identities
        request.seed = UUIDs.make(0, 0)
        return request
    }

    /// The prefix of untracked tables that triggers maintain.
    static let keptPrefix = "kept_"

    /// True if triggers maintain derived data.
    var keepsDerived: Bool {
        sql.contains("CREATE VIRTUAL TABLE") || sql.contains("CREATE TABLE \(Self.keptPrefix)")
    }

    /// The simulation's own tables, which every schema gets.
    ///
    /// `sim_write` has one row for each transaction. The amounts of `sim_entry` add up to 0; a purse's two sides add up
    /// to 1000, whoever writes to it, since one update sets both; a pair's two rows add up to 2000, since only one node
    /// writes to it.
    static let own = """
        CREATE TABLE sim_write(id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
        CREATE TABLE sim_entry(id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, amount INTEGER NOT NULL);
        CREATE TABLE sim_purse(id TEXT PRIMARY KEY NOT NULL, l INTEGER NOT NULL, r INTEGER NOT NULL);
        CREATE TABLE sim_pair(id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, balance INTEGER NOT NULL);
        """

    private enum Part: String {
        case person, project, tag, task, membership, seat, profile, setting
    }

    /// Every kind of key and of reference that rows can have.
    private static let tables: [(part: Part, sql: String)] = [
        (
            .person,
            """
            CREATE TABLE person(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, score REAL,
              boss INTEGER REFERENCES person(id) ON DELETE SET NULL)
            """
        ),
        (
            .project,
            """
            CREATE TABLE project(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, title TEXT,
              owner INTEGER REFERENCES person(id) ON DELETE SET NULL)
            """
        ),
        (
            .tag,
            """
            CREATE TABLE tag(name TEXT PRIMARY KEY NOT NULL, color TEXT,
              parent TEXT REFERENCES tag(name) ON DELETE SET NULL ON UPDATE CASCADE) WITHOUT ROWID
            """
        ),
        (
            .task,
            """
            CREATE TABLE task(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT,
              project INTEGER NOT NULL REFERENCES project(id) ON DELETE CASCADE ON UPDATE CASCADE,
              assignee INTEGER REFERENCES person(id) ON DELETE SET NULL,
              label TEXT REFERENCES tag(name) ON DELETE SET NULL ON UPDATE CASCADE)
            """
        ),
        (
            .membership,
            """
            CREATE TABLE membership(person INTEGER NOT NULL REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE,
              project INTEGER NOT NULL REFERENCES project(id) ON DELETE CASCADE ON UPDATE CASCADE, role TEXT,
              PRIMARY KEY(person, project))
            """
        ),
        (
            .seat,
            """
            CREATE TABLE seat(id INTEGER PRIMARY KEY, place TEXT UNIQUE, email TEXT UNIQUE,
              person INTEGER REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE)
            """
        ),
        (
            .profile,
            """
            CREATE TABLE profile(id INTEGER PRIMARY KEY REFERENCES person(id) ON DELETE CASCADE \
            ON UPDATE CASCADE, bio TEXT)
            """
        ),
        (.setting, "CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value)"),
    ]

    private static let changes: [(part: Part, upgrade: Upgrade)] = [
        (
            .person,
            Upgrade(
                sql: "ALTER TABLE person RENAME COLUMN score TO points", probe: hasColumn("person", "points"),
                renames: ("person", "score", "points"))
        ),
        (.person, Upgrade(sql: "ALTER TABLE person ADD COLUMN nick TEXT", probe: hasColumn("person", "nick"))),
        (
            .task,
            Upgrade(
                sql: "ALTER TABLE task ADD COLUMN weight INTEGER NOT NULL DEFAULT 7", probe: hasColumn("task", "weight")
            )
        ),
        // These have rows that several nodes insert with the same key.
        (
            .setting,
            Upgrade(sql: "ALTER TABLE setting ADD COLUMN weight INTEGER", probe: hasColumn("setting", "weight"))
        ),
        (
            .tag,
            Upgrade(
                sql: "ALTER TABLE tag ADD COLUMN shade TEXT NOT NULL DEFAULT 'dark'", probe: hasColumn("tag", "shade"))
        ),
        (
            .project,
            Upgrade(
                sql: "ALTER TABLE project ADD COLUMN budget REAL DEFAULT 1.5", probe: hasColumn("project", "budget"))
        ),
        (.membership, Upgrade(sql: "ALTER TABLE membership ADD COLUMN since", probe: hasColumn("membership", "since"))),
        (
            .person,
            Upgrade(
                sql: """
                    CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT,
                      person INTEGER REFERENCES person(id) ON DELETE SET NULL)
                    """, probe: hasColumn("note", "body"), attaches: true)
        ),
    ]

    private static func company(_ parts: [Part]) -> SimulatedSchema {
        var schema = SimulatedSchema(
            sql: tables.filter { parts.contains($0.part) }.map(\.sql).joined(separator: ";\n"))
        if parts.contains(.project) { schema.identities = ["project": ["code"]] }
        schema.upgrades = changes.filter { parts.contains($0.part) }.map(\.upgrade)
        return schema
    }

    private static func hasColumn(_ table: String, _ column: String) -> String {
        "SELECT 1 FROM pragma_table_info('\(table)') WHERE name = '\(column)'"
    }

    /// The name of a column after all upgrades.
    func today(_ table: String, _ column: String) -> String {
        upgrades.compactMap(\.renames).first { $0.table == table && $0.from == column }?.to ?? column
    }
}
