import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// A node's first pass over rows that were written while no agent ran: it handles each row once, however many there
/// are.
@Suite struct StartTests {
    /// Tables, and what other programs write to them while no agent runs.
    enum Backlog: String, CaseIterable {
        case hidden, declared, natural, withoutRowID, childrenFirst, keyChange, vanished

        static let declaredRequest: AttachRequest = {
            var request = AttachRequest()
            request.identities = ["declared": ["code"]]
            return request
        }()

        var schema: String {
            switch self {
            case .hidden: "CREATE TABLE hidden(id INTEGER PRIMARY KEY, v);"
            case .declared, .vanished: "CREATE TABLE declared(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, v);"
            case .natural: "CREATE TABLE natural_(name TEXT PRIMARY KEY NOT NULL, v);"
            case .withoutRowID: "CREATE TABLE pair(a INT, b TEXT, v, PRIMARY KEY(a, b)) WITHOUT ROWID;"
            case .childrenFirst, .keyChange:
                """
                CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);
                CREATE TABLE child(id INTEGER PRIMARY KEY, parent INT REFERENCES parent(id) ON UPDATE CASCADE);
                INSERT INTO parent VALUES (-1, 'old');
                """
            }
        }

        func sql(_ count: Int) -> String {
            let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
            return switch self {
            case .hidden: "\(rows) INSERT INTO hidden SELECT i, i FROM n;"
            case .declared, .vanished: "\(rows) INSERT INTO declared SELECT i, 'c' || i, i FROM n;"
            case .natural: "\(rows) INSERT INTO natural_ SELECT 'n' || i, i FROM n;"
            case .withoutRowID: "\(rows) INSERT INTO pair SELECT i % 10, 'n' || i, i FROM n;"
            case .childrenFirst:
                "\(rows) INSERT INTO child SELECT i, i FROM n; \(rows) INSERT INTO parent SELECT i, 'p' FROM n;"
            case .keyChange:
                """
                \(rows) INSERT INTO child SELECT i, -1 FROM n;
                UPDATE child SET id = -id WHERE id = 1;
                UPDATE parent SET id = -2;
                """
            }
        }

        var table: String {
            switch self {
            case .hidden: "hidden"
            case .declared, .vanished: "declared"
            case .natural: "natural_"
            case .withoutRowID: "pair"
            case .childrenFirst, .keyChange: "child"
            }
        }
    }

    private func withoutTriggers(_ node: TestNode, _ sql: String) throws {
        let queue = try Connection.open(path: node.path, configuration: .init(), role: .applier)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    /// The work of the engine's connection from the audit to the last message.
    private func work(_ backlog: Backlog, _ count: Int) throws -> Int {
        let lab = try Lab(
            backlog.schema, request: [.declared, .vanished].contains(backlog) ? Backlog.declaredRequest : .init())
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try exchange([a, b])
        try a.foreignWrite(backlog.sql(count), foreignKeys: backlog == .keyChange)
        if backlog == .vanished { try withoutTriggers(a, "DELETE FROM declared") }
        try a.restart()
        let meter = WorkMeter(a.engine.session.database)
        let report = try a.engine.audit()
        try a.publish()
        let work = meter.count
        #expect(report.appeared.isEmpty)
        #expect(report.vanished == (backlog == .vanished ? ["declared": count] : [:]))
        try b.consume()
        #expect(try b.rows("SELECT count(*) FROM \(backlog.table)") == a.rows("SELECT count(*) FROM \(backlog.table)"))
        #expect(try a.rows("SELECT count(*) FROM \(backlog.table)") == [backlog == .vanished ? "0" : "\(count)"])
        #expect(try b.parked().isEmpty)
        return work
    }

    @Test(arguments: Backlog.allCases) func p66theWorkOfAStartGrowsLinearlyWithTheRows(_ backlog: Backlog)
        throws
    {
        let (few, many) = (try work(backlog, 300), try work(backlog, 2400))
        // There are eight times the rows. Quadratic work would be 64 times as much.
        #expect(many < few * 16, "\(few) for 300 rows, \(many) for 2400")
        #expect(few > 50)
    }

    @Test func p66othersWriteWhileAnAuditReads() throws {
        let lab = try Lab(Backlog.hidden.schema)
        let a = try lab.node("a")
        try a.foreignWrite(Backlog.hidden.sql(25_000))
        try a.restart()
        // A row that is not in the log, which another program updates while the audit is reading.
        try a.foreignWrite(
            """
            INSERT INTO hidden VALUES (-1, 0), (-2, 0); DELETE FROM _martlet_log WHERE e = 1 AND r < 0;
            """)
        var writes = 0
        let report = try a.engine.audit { progress in
            guard progress.rows > 0 else { return }
            writes += 1
            do {
                try a.foreignWrite(
                    "UPDATE hidden SET v = 'touched' WHERE id = -1; INSERT INTO hidden VALUES (-\(9 + writes), 1)")
            } catch {
                Issue.record(error)
            }
        }
        #expect(writes == 2)
        // The updated row is in the log already; the next audit finds it.
        #expect(report.appeared == ["hidden": 1])
        let inserted = try a.store.fetchHistory().flatMap(\.changes).filter { $0.kind == .insert }.compactMap(\.row)
        #expect(inserted.filter { $0 < 0 }.sorted() == [-11, -10, -2])
        #expect(try a.engine.audit().appeared == ["hidden": 1])
        #expect(try a.engine.audit().isClean)
    }
}
