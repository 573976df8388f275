import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// A store reuses a catalog as long as the tables that it was built from stay unchanged.
@Suite struct CatalogSourceTests {
    private let directory: TemporaryDirectory
    private let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        store = try Store.create(path: directory.path("s.sqlite"))
        try store.write {
            try $0.execute(
                sql: """
                    CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
                    CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER REFERENCES trip(id));
                    """)
        }
        _ = try store.attach()
    }

    @Test func changesOfRowsLeaveTheSourceUnchanged() throws {
        let before = try source()
        try store.write { try $0.execute(sql: "INSERT INTO trip(name) VALUES ('a'); DELETE FROM trip") }
        #expect(try source() == before)
    }

    @Test(arguments: [
        "ALTER TABLE trip RENAME COLUMN name TO title", "ALTER TABLE trip RENAME TO journey",
        "CREATE UNIQUE INDEX place ON stop(trip)",
        "UPDATE _martlet_entities SET unique_policy = 'keepOldest' WHERE name = 'trip'",
        "UPDATE _martlet_columns SET former = '[\"label\"]' WHERE name = 'name'",
        "UPDATE _martlet_entities SET state = 'lost' WHERE name = 'stop'",
    ])
    func changesOfTheCatalogChangeTheSource(_ sql: String) throws {
        let before = try (source(), store.database.read { try Catalog.load($0) }.entities)
        // Like another program: this builds no catalog on the way.
        let other = try DatabaseQueue(path: store.path)
        try other.write { try $0.execute(sql: sql) }
        try other.close()
        #expect(try source() != before.0)
        #expect(try store.database.read { try Catalog.load($0) }.entities != before.1)
    }

    private func source() throws -> CatalogSource {
        try store.database.read { db in
            try CatalogSource(
                db,
                entities: Row.fetchAll(db, sql: "SELECT * FROM _martlet_entities WHERE state = 'tracked' ORDER BY id"))
        }
    }
}
