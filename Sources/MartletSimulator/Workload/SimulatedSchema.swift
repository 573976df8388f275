import MartletStore

/// The tables that are simulated, and how they change.
struct SimulatedSchema: Sendable {
    struct Upgrade: Sendable {
        var sql: String
        /// A query that finds a row once this was done.
        var probe: String
        /// True where it makes a table that is to be tracked.
        var attaches = false
        /// Quoted names without which it can't be made.
        var needs: [String] = []
        /// The column whose name it changes.
        var renames: (table: String, from: String, to: String)?
    }

    var sql: String
    var identities: [String: [String]] = [:]
    /// In this order on each node.
    var upgrades: [Upgrade] = []

    /// True where statements are made from what the schema says, and the oracle may not know all of it.
    var isGenerated = false
    /// The SQL from which nothing was left out, where something can be.
    private var source: String?
    /// How many parts there are to leave out.
    var partCount: Int { source.map { SchemaText($0).count } ?? 0 }

    /// The schemas of which each seed takes one. The fewer tables there are, the more meets in them.
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

    /// One that a user has, or that a seed came to.
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

    /// What the names of tables begin with that triggers keep, and that are not tracked.
    static let keptPrefix = "kept_"

    /// True where triggers keep something beside the tables.
    var keepsDerived: Bool {
        sql.contains("CREATE VIRTUAL TABLE") || sql.contains("CREATE TABLE \(Self.keptPrefix)")
    }

    /// The simulation's own tables, whatever else there is.
    ///
    /// One row of `sim_write` for each transaction. The amounts of `sim_entry` add up to nothing; a purse's two sides
    /// to 1000 whoever writes to it, since one update sets both; a pair's two rows to 2000, since one node alone writes
    /// to it.
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
            CREATE TABLE profile(id INTEGER PRIMARY KEY REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE, bio TEXT)
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
        // These have rows that several nodes insert under one name.
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

    /// The name of a column once all upgrades were made.
    func today(_ table: String, _ column: String) -> String {
        upgrades.compactMap(\.renames).first { $0.table == table && $0.from == column }?.to ?? column
    }
}
