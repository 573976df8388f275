import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// The state that a transaction enqueued in slices stores for rows that refer to its deleted rows and keys
/// (docs/decisions/0039).
@Suite struct StateBetweenSlicesTests {
    private static let schema = """
        CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE item(sku TEXT PRIMARY KEY NOT NULL, owner INTEGER REFERENCES owner(id));
        CREATE TABLE need(sku TEXT PRIMARY KEY NOT NULL, owner INTEGER NOT NULL REFERENCES owner(id));
        CREATE TABLE ticket(id INTEGER PRIMARY KEY, owner INTEGER REFERENCES owner(id));
        CREATE TABLE tag(name TEXT PRIMARY KEY NOT NULL);
        CREATE TABLE tagged(sku TEXT PRIMARY KEY NOT NULL, tag TEXT REFERENCES tag(name));
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
        """

    private static func count(_ last: Int) -> String {
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(last))"
    }

    /// The log row up to which changes are stamped.
    private func stampedRow(_ node: TestNode) throws -> Int { Int(try node.stampedThrough()) }

    private func isSettled(_ node: TestNode) throws -> Bool {
        try node.withContext { _, context in
            context.left.isEmpty && context.reused.firstKept == nil && context.news.unsettled == .nothing
                && context.parts.open == nil
        }
    }

    @Test func p89ATransactionThatDeletesAReferredRowIsEnqueuedInSlices() throws {
        let lab = try Lab(Self.schema)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite(
            "INSERT INTO owner VALUES (1, 'Ann'), (2, 'Ben'); INSERT INTO item VALUES ('x', 1), ('y', 2)")
        try exchange([a, b])
        try a.foreignWrite(
            """
            DELETE FROM owner WHERE id = 1; REPLACE INTO owner VALUES (2, 'Bob');
            \(Self.count(20_000)) INSERT INTO setting SELECT 'k' || i, i FROM n
            """)
        var before = try stampedRow(a)
        var commits = 0
        try runUntilNothingMoves("enqueuing", limit: 1000) {
            a.publisher.step()
            let now = try stampedRow(a)
            // The marks of the transaction, and of the changes that are settled after it, are rows of the log, too.
            #expect(now > before && now - before <= EnqueueLimits().changes + 4)
            before = now
            commits += 1
            return try a.outboxCount() == 1
        }
        #expect(commits >= 4)
        try exchange([a, b])
        for node in [a, b] {
            #expect(try node.rows("SELECT count(*) FROM setting") == ["20000"])
            #expect(
                try node.rows("SELECT sku, name FROM item LEFT JOIN owner ON owner.id = owner ORDER BY 1")
                    == ["x|NULL", "y|Bob"])
            #expect(try node.pendingReferences().count == 1)
            #expect(try isSettled(node))
        }
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    /// Deletes of rows that others refer to, keys that other rows take over, and keys of references by value that rows
    /// give up.
    private static let changes = """
        DELETE FROM owner WHERE id <= 20;
        INSERT INTO setting VALUES ('between', 1);
        DELETE FROM tag WHERE name IN ('t1', 't2');
        REPLACE INTO owner SELECT id, 'new ' || name FROM owner WHERE id > 30;
        REPLACE INTO owner SELECT id, 'twice ' || name FROM owner WHERE id > 35;
        UPDATE item SET owner = 33 WHERE sku = 'i40';
        UPDATE owner SET id = 100 WHERE id = 25;
        INSERT INTO owner VALUES (3, 'third');
        \(count(30)) INSERT INTO setting SELECT 'k' || i, i FROM n
        """

    private struct Outcome: Equatable {
        var rows: [[String]]
        var parked: [String]
        var pending: [String]
    }

    private func outcome(of node: TestNode) throws -> Outcome {
        let queries = [
            "SELECT name FROM owner ORDER BY 1",
            "SELECT sku, name FROM item LEFT JOIN owner ON owner.id = owner ORDER BY 1",
            "SELECT sku, name FROM need LEFT JOIN owner ON owner.id = owner ORDER BY 1",
            "SELECT name FROM tag ORDER BY 1", "SELECT sku, tag FROM tagged ORDER BY 1",
            "SELECT key, value FROM setting ORDER BY 1", "PRAGMA foreign_key_check",
        ]
        return try Outcome(
            rows: queries.map(node.rows), parked: node.parked(),
            pending: node.pendingReferences().map { "\($0.entity ?? "?") \($0.values.keys.sorted())" }.sorted())
    }

    /// - Parameters:
    ///   - slice: how many changes a commit takes. Nil: the default number.
    ///   - leavesMany: whether more rows give up a key than are remembered by their values.
    private func run(slice: Int?, crashes: Bool, leavesMany: Bool) throws -> [Outcome] {
        let lab = try Lab(Self.schema)
        let a = try lab.node("a") { if let slice { $0.enqueueLimits.changes = slice } }
        let b = try lab.node("b")
        try a.foreignWrite(
            """
            \(Self.count(40)) INSERT INTO owner SELECT i, 'o' || i FROM n;
            \(Self.count(40)) INSERT INTO item SELECT 'i' || i, i FROM n;
            \(Self.count(40)) INSERT INTO need SELECT 'n' || i, i FROM n;
            \(Self.count(15)) INSERT INTO tag SELECT 't' || i FROM n;
            \(Self.count(15)) INSERT INTO tagged SELECT 's' || i, 't' || i FROM n;
            """)
        try exchange([a, b])
        try a.foreignWrite(Self.changes + (leavesMany ? "; DELETE FROM tag WHERE name <> 't15'" : ""))
        var steps = 0
        try runUntilNothingMoves("enqueuing", limit: 1000) {
            a.publisher.step()
            steps += 1
            if crashes { try a.restart() }
            return try a.outboxCount() == 1 || !isSettled(a)
        }
        if let slice { #expect(steps > 80 / slice) }
        try exchange([a, b])
        #expect(try isSettled(a))
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
        #expect(try a.store.audit().isClean)
        return try [outcome(of: a), outcome(of: b)]
    }

    @Test(arguments: [1, 3, 7], [false, true])
    func p89ReferencesToDeletedRowsSurviveACrashBetweenSlices(slice: Int, leavesMany: Bool) throws {
        let whole = try run(slice: nil, crashes: false, leavesMany: leavesMany)
        #expect(whole[0] == whole[1])
        #expect(whole[0].parked.count == 19)
        #expect(whole[0].rows[6] == [])
        for crashes in [false, true] {
            #expect(try run(slice: slice, crashes: crashes, leavesMany: leavesMany) == whole, "crashes: \(crashes)")
        }
    }

    @Test func p111ARowThatMovesAfterItsTargetWasReplacedKeepsItsReference() throws {
        let lab = try Lab(Self.schema)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO owner VALUES (3, 'old'); INSERT INTO ticket VALUES (1, 3)")
        try exchange([a, b])
        try a.foreignWrite(
            "DELETE FROM owner; INSERT INTO owner VALUES (3, 'new'); UPDATE ticket SET id = 5 WHERE id = 1")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                owner name='new'
                ticket owner=->'new'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    @Test func p89AStoreOfAnEarlierVersionRemembersDeletedTargets() throws {
        let lab = try Lab(Self.schema)
        let a = try lab.node("a") { $0.enqueueLimits.changes = 2 }
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO owner VALUES (1, 'Ann'); INSERT INTO item VALUES ('x', 1)")
        try exchange([a, b])
        try a.foreignWrite(OldFormat.sql(sync: 13))
        try a.restart()
        try a.foreignWrite("DELETE FROM owner; \(Self.count(10)) INSERT INTO setting SELECT 'k' || i, i FROM n")
        a.publisher.step()
        #expect(try a.withContext { _, context in context.left.hasKept })
        try a.restart()
        try exchange([a, b])
        let settings = (1...10).map { "setting key='k\($0)' value=\($0)" }.sorted()
        let lines = ["item sku='x' owner=NULL"] + settings + ["pending missingTarget item sku='x' owner=->?"]
        try expectBoth(a, b, are: lines.joined(separator: "\n"))
        #expect(try isSettled(a))
    }
}
