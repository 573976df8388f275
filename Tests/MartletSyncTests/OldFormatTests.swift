import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Stores that earlier versions left.
@Suite struct OldFormatTests {
    let lab: Lab

    init() throws { lab = try Lab(partitions: 3) }

    /// Turns a store into one from before store format 6 and sync format 8: positions in tables of their own, and a row
    /// for each collected clock.
    private func downgrade(_ node: TestNode) throws {
        // Flushes the clocks to the side table, and copies them back to where they were collected.
        _ = try node.store.audit()
        let entity = try node.rows("SELECT id FROM _martlet_entities WHERE name = 'setting'")[0]
        try node.foreignWrite(
            """
            CREATE TABLE o AS SELECT * FROM _martlet_offsets;
            CREATE TABLE g AS SELECT * FROM _martlet_origins;
            DROP VIEW _martlet_offsets;
            DROP VIEW _martlet_origins;
            CREATE TABLE _martlet_origins(node INTEGER PRIMARY KEY, applied INTEGER NOT NULL, heard INTEGER);
            CREATE TABLE _martlet_offsets(
              topic TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL, origin BLOB, sequence INTEGER,
              appended INTEGER, PRIMARY KEY(topic, partition)) WITHOUT ROWID;
            INSERT INTO _martlet_offsets SELECT * FROM o;
            INSERT INTO _martlet_origins SELECT * FROM g;
            DROP TABLE o;
            DROP TABLE g;
            DELETE FROM _martlet_meta WHERE key GLOB 'offset/*' OR key GLOB 'origin/*';
            ALTER TABLE _martlet_meta DROP COLUMN origin;
            ALTER TABLE _martlet_meta DROP COLUMN sequence;
            ALTER TABLE _martlet_meta DROP COLUMN at;
            DROP TABLE _martlet_recent;
            CREATE TABLE _martlet_recent(
              id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, hlc INTEGER, node INTEGER,
              attrs BLOB);
            INSERT INTO _martlet_recent(entity, ident, hlc, node, attrs)
              SELECT \(entity), ident, 0, 0, NULL FROM _martlet_side_\(entity);
            INSERT INTO _martlet_recent(entity, ident, hlc, node, attrs)
              SELECT \(entity), ident, hlc, node, attrs FROM _martlet_side_\(entity);
            INSERT INTO _martlet_recent(entity, ident) VALUES (\(entity), x'0304676f6e65');
            DELETE FROM _martlet_side_\(entity);
            DROP TABLE _martlet_reserved;
            DROP TABLE _martlet_prints;
            DELETE FROM _martlet_meta WHERE key GLOB 'printed:*' OR key GLOB 'initial:*';
            ALTER TABLE _martlet_entities DROP COLUMN chains;
            ALTER TABLE _martlet_columns DROP COLUMN referred;
            DROP TABLE _martlet_replaced;
            CREATE TABLE _martlet_replaced(e INTEGER, r, c1, c2, c3, c4, c5, c6, c7, c8);
            DROP TABLE _martlet_ingest;
            UPDATE _martlet_meta SET value = 5 WHERE key = 'format';
            UPDATE _martlet_meta SET value = 7 WHERE key = 'sync_format';
            UPDATE _martlet_meta SET value = (SELECT schema_version FROM pragma_schema_version)
              WHERE key IN ('schema_version', 'trigger_schema');
            """)
    }

    @Test func aStoreOfAnEarlierFormatKeepsItsOffsetsAndClocks() throws {
        let a = try lab.node("a")
        let b = try lab.node("b")
        let c = try lab.node("c")
        try a.write("INSERT INTO setting VALUES ('k', 'first'), ('l', 1)")
        try exchange([a, b, c])
        try a.write("UPDATE setting SET value = 'older' WHERE key = 'k'")
        try b.write("UPDATE setting SET value = 'newer' WHERE key = 'k'")
        try b.publish()
        try c.consume()
        let offsets = try c.engine.offsets(topic: "t")
        let origins = try c.rows("SELECT * FROM _martlet_origins ORDER BY node")
        #expect(offsets.contains { $0.offset > 0 })
        #expect(origins.count == 2)

        try downgrade(c)
        // A read-only program can't migrate the store, and reports that.
        #expect { _ = try StoreSoundness.examine(c.path) } throws: { error in
            (error as? StoreError)?.message == "The store has an older format."
        }
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        let reader = try Store(path: c.path, configuration: configuration)
        #expect(try SyncStatus.read(reader).partitions.map(\.next) == offsets.map(\.offset))
        try reader.close()
        try c.restart()
        #expect(try c.engine.offsets(topic: "t") == offsets)
        #expect(try c.rows("SELECT * FROM _martlet_origins ORDER BY node") == origins)
        #expect(try c.rows("SELECT value FROM _martlet_meta WHERE key IN ('format', 'sync_format')") == ["15", "17"])
        #expect(try c.consume() == ApplyReport())

        try a.publish()
        try c.consume()
        #expect(try c.rows("SELECT key, value FROM setting ORDER BY key") == ["k|newer", "l|1"])
        #expect(try c.store.audit().isClean)
        try exchange([a, b, c])
        #expect(try Set([a, b, c].map { try $0.rows("SELECT key, value FROM setting ORDER BY key") }).count == 1)
    }

    @Test func theDocumentStatesTheFormats() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("docs/upgrading.md")
        let document = try String(contentsOf: file, encoding: .utf8)
        let node = try lab.node("a")
        let formats = try node.rows(
            "SELECT value FROM _martlet_meta WHERE key IN ('format', 'sync_format') ORDER BY key")
        try #require(formats.count == 2)
        #expect(document.contains("| the store's format | \(formats[0]) |"))
        #expect(document.contains("| the sync tables in it | \(formats[1]) |"))
    }
}
