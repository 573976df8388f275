import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Rows that appear and vanish while no trigger runs.
@Suite struct AuditTests {
    private static let schema = """
        CREATE TABLE hidden(id INTEGER PRIMARY KEY, v);
        CREATE TABLE declared(id INTEGER PRIMARY KEY, code TEXT UNIQUE, v);
        CREATE TABLE named(name TEXT PRIMARY KEY, v);
        CREATE TABLE pair(a INT, b TEXT, v, PRIMARY KEY(a, b)) WITHOUT ROWID;
        INSERT INTO hidden VALUES (1, 1), (2, 2); INSERT INTO declared VALUES (1, 'a', 1), (2, 'b', 2);
        INSERT INTO named VALUES ('a', 1), ('b', 2); INSERT INTO pair VALUES (1, 'a', 1), (2, 'b', 2);
        """

    private func store() throws -> TemporaryStore {
        var request = AttachRequest()
        request.identities = ["declared": ["code"]]
        return try TemporaryStore(Self.schema, attach: request)
    }

    /// Runs SQL without the capture triggers, and recreates them exactly, so that the schema looks unchanged.
    private func unseen(_ sql: String, _ temporary: TemporaryStore) throws {
        let connection = try temporary.rawConnection()
        try connection.write { db in
            let triggers = try Row.fetchAll(db, sql: "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
            let version = try Int.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
            for row in triggers { try db.execute(sql: "DROP TRIGGER \((row["name"] as String).quotedName)") }
            try db.execute(sql: sql)
            for row in triggers { try db.execute(sql: row["sql"]) }
            try db.execute(sql: "PRAGMA schema_version = \(version)")
        }
        try connection.close()
    }

    @Test func anAuditThatIsStoppedLogsNothingAndCanBeRepeated() throws {
        let temporary = try store()
        try unseen("DELETE FROM hidden WHERE id = 1", temporary)
        let connection = try Connection.open(path: temporary.path, configuration: .init(), role: .applier)
        #expect(throws: CancellationError.self) {
            try connection.writeWithoutTransaction { db in
                try Audit.runSliced(db, patience: .zero) { _ in throw CancellationError() }
            }
        }
        #expect(try temporary.changes().isEmpty)
        try connection.close()
        #expect(try temporary.store.audit().vanished == ["hidden": 1])
    }

    @Test func auditLogsVanishedAndAppearedRows() throws {
        let temporary = try store()
        #expect(try temporary.store.audit().isClean)
        let script =
            ["hidden", "declared", "named", "pair"].map { "DELETE FROM \($0) WHERE v = 1;" }.joined()
                + """
                INSERT INTO hidden VALUES (3, 3); INSERT INTO declared VALUES (3, 'c', 3);
                INSERT INTO named VALUES ('c', 3); INSERT INTO pair VALUES (3, 'c', 3);
                """
        try unseen(script, temporary)
        let report = try temporary.store.audit()
        let each = ["hidden": 1, "declared": 1, "named": 1, "pair": 1]
        #expect(report.vanished == each)
        #expect(report.appeared == each)
        #expect(
            Set(try temporary.changes()) == [
                "delete hidden#1", "insert hidden#3 v=3", #"delete declared#1 code="a""#,
                #"insert declared#3 code="c" v=3"#,
                #"delete named name="a""#, #"insert named name="c" v=3"#, #"delete pair a=1 b="a""#,
                #"insert pair a=3 b="c" v=3"#,
            ])
        #expect(try temporary.store.fetchHistory().flatMap(\.changes).allSatisfy { $0.identity != nil })
        #expect(try temporary.store.audit().isClean)
    }

    @Test func auditComparesRowsOfUnstampedHistory() throws {
        let temporary = try store()
        try temporary.raw(
            """
            INSERT INTO hidden VALUES (5, 5); INSERT INTO declared VALUES (5, 'e', 5);
            INSERT INTO named VALUES ('e', 5);
            INSERT INTO pair VALUES (5, 'e', 5); DELETE FROM hidden WHERE id = 1; DELETE FROM named WHERE name = 'a';
            UPDATE hidden SET id = 8 WHERE id = 2; UPDATE declared SET code = 'z', id = 9 WHERE id = 2;
            UPDATE pair SET b = 'y' WHERE a = 2;
            """)
        #expect(try temporary.store.audit().isClean)
        let token = try temporary.store.lastToken()
        try unseen(
            """
            DELETE FROM hidden WHERE id IN (5, 8); DELETE FROM declared WHERE id IN (5, 9);
            DELETE FROM named WHERE name = 'e';
            DELETE FROM pair WHERE a IN (2, 5); INSERT INTO hidden VALUES (1, 7); INSERT INTO named VALUES ('a', 7);
            """, temporary)
        _ = try temporary.store.audit()
        #expect(
            Set(try temporary.changes(after: token)) == [
                "delete hidden#5", "delete hidden#8", #"delete declared#5 code="e""#, #"delete declared#9 code="z""#,
                #"delete named name="e""#, #"delete pair a=2 b="y""#, #"delete pair a=5 b="e""#, "insert hidden#1 v=7",
                #"insert named name="a" v=7"#,
            ])
        #expect(try temporary.store.audit().isClean)
    }

    @Test func restoringATriggerFindsTheRowsItMissed() throws {
        let temporary = try store()
        try temporary.raw(
            "DROP TRIGGER _martlet_1_insert; DROP TRIGGER _martlet_1_delete; DELETE FROM hidden WHERE id = 2")
        #expect(try temporary.changes() == ["delete hidden#2"])
    }

    @Test func auditIgnoresRowsWithNullInTheirIdentity() throws {
        let temporary = try store()
        try temporary.raw("INSERT INTO named VALUES (NULL, 1), (NULL, 2)")
        #expect(try temporary.store.audit().isClean)
        #expect(try temporary.store.fetchHistory().flatMap(\.changes).map(\.identity) == [nil, nil])
    }

    @Test func auditFindsNothingAfterAnExpressionIndexDisplacesARow() throws {
        let temporary = try TemporaryStore(
            """
            CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT); CREATE UNIQUE INDEX folded ON word(lower(text));
            INSERT INTO word VALUES (1, 'One');
            """)
        try temporary.raw("REPLACE INTO word VALUES (2, 'ONE')")
        #expect(try temporary.changes() == ["delete word#1", #"insert word#2 text="ONE""#])
        #expect(try temporary.store.audit().isClean)
    }
}
