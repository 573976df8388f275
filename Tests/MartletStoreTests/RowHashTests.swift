import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// The hashes of the values that rows held, which follow the log.
@Suite struct RowHashTests {
    private static let schema = """
        CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, size INT);
        CREATE TABLE note(id BLOB PRIMARY KEY, body TEXT, stars REAL);
        CREATE TABLE tag(code TEXT PRIMARY KEY, n INT, extra BLOB);
        """

    /// More changes than one part of a prune takes, to rows whose keys have no order. Many rows change several times,
    /// and some get another key, or the key of another row.
    private static let changes = [
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
        INSERT INTO note SELECT CAST(printf('%08x', i * 2654435761 % 4294967296) AS BLOB), 'body ' || i, i / 7.0 FROM n;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO item SELECT i * 7919 % 3001, 'item ' || i, i FROM n;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO tag SELECT 'tag ' || (i * 7919 % 3001), i, zeroblob(i % 5) FROM n;
        """,
        """
        UPDATE note SET stars = 5 WHERE rowid % 3 = 0;
        UPDATE note SET body = NULL WHERE rowid % 4 = 0;
        DELETE FROM note WHERE rowid % 5 = 0;
        UPDATE item SET size = -size WHERE id % 2 = 0;
        UPDATE item SET id = id + 10000 WHERE id % 3 = 0;
        DELETE FROM item WHERE id % 7 = 0;
        INSERT INTO item SELECT id + 1, 'again', 0 FROM item WHERE id % 7 = 6;
        UPDATE tag SET code = code || ' renamed' WHERE n % 3 = 0;
        INSERT INTO tag SELECT 'tag ' || n, -1, x'00' FROM tag WHERE n % 3 = 0 ON CONFLICT DO NOTHING;
        DELETE FROM tag WHERE n % 4 = 0;
        """,
    ]

    private func hashes(_ store: TemporaryStore) throws -> [String] {
        try store.lines("SELECT entity, hex(key), hex(prints) FROM _martlet_prints ORDER BY entity, key")
    }

    /// - Parameter prunes: true if the hashes follow the log in the parts in which it is pruned, false if at once.
    @Test(arguments: [false, true])
    func hashesThatFollowTheLogAreThoseOfTheRows(prunes: Bool) throws {
        let temporary = try TemporaryStore(Self.schema)
        for changes in Self.changes { try temporary.raw(changes) }
        if prunes {
            let last = try #require(try temporary.store.lastToken())
            #expect(try temporary.store.deleteHistory(through: last).deletedCount > 20_000)
        } else {
            let report = try temporary.store.alter(context: "test") { try Audit.runBlind($0.database, [1, 2, 3]) }
            #expect(report.isClean)
        }
        let followed = try hashes(temporary)
        let rowCount = try temporary.lines(
            "SELECT (SELECT count(*) FROM item) + (SELECT count(*) FROM note) + (SELECT count(*) FROM tag)")
        #expect(rowCount == ["\(followed.count)"])
        // Computes the hashes from the rows.
        try temporary.store.alter(context: "test") { try $0.withoutCapture { ["item", "note", "tag"] } }
        #expect(try hashes(temporary) == followed)
    }
}
