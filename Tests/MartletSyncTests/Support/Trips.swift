import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// A schema with an early and a late version. In the late version, two columns have other names, and the IDs of trips
/// are made from three columns instead of being assigned by Martlet.
enum Trips {
    private static let others = """
        CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT,
          trip INTEGER REFERENCES trip(id) ON DELETE SET NULL);
        CREATE TABLE tagged(trip INTEGER NOT NULL REFERENCES trip(id) ON DELETE CASCADE, tag TEXT NOT NULL,
          PRIMARY KEY(trip, tag));
        """
    static let early =
        """
        CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, start_date REAL NOT NULL,
          end_date REAL NOT NULL, place TEXT);

        """ + others
    static let late =
        """
        CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, startDate REAL NOT NULL,
          endDate REAL NOT NULL, place TEXT, kind TEXT NOT NULL DEFAULT 'Trip');
        CREATE UNIQUE INDEX trip_unique ON trip(name, startDate, endDate);

        """ + others
    static let migration = """
        ALTER TABLE trip RENAME COLUMN start_date TO startDate;
        ALTER TABLE trip RENAME COLUMN end_date TO endDate;
        ALTER TABLE trip ADD COLUMN kind TEXT NOT NULL DEFAULT 'Trip';
        CREATE UNIQUE INDEX trip_unique ON trip(name, startDate, endDate);
        """

    /// For a store that migrates.
    static let change: AttachRequest = {
        var request = AttachRequest()
        request.identities = ["trip": ["name", "startDate", "endDate"]]
        return request
    }()

    /// For a store that begins with the late version.
    static let fresh: AttachRequest = {
        var request = change
        request.formerColumnNames = ["trip": ["startDate": ["start_date"], "endDate": ["end_date"]]]
        return request
    }()

    static func contents(_ node: TestNode) throws -> [String] {
        try node.rows(
            """
            SELECT t.name, startDate, endDate, place, kind,
              (SELECT group_concat(title, '+') FROM (SELECT title FROM item WHERE trip = t.id ORDER BY title)),
              (SELECT group_concat(tag, '+') FROM (SELECT tag FROM tagged WHERE trip = t.id ORDER BY tag))
            FROM trip t ORDER BY 1, 2, 3
            """)
    }
}

extension TestNode {
    func migrateTrips() throws { try store.alter(sql: Trips.migration, attaching: Trips.change) }
}

/// Expects that all nodes hold the same data, in their tables and in their sync state.
func expectAgreement(_ nodes: [TestNode]) throws {
    let digest = try StoreDigest.compute(nodes[0].store)
    for node in nodes {
        let other = try StoreDigest.compute(node.store)
        #expect(other.entities == digest.entities, "\(node.name)")
        #expect(try node.rows("PRAGMA foreign_key_check") == [], "\(node.name)")
        #expect(try node.pendingMessages() == [], "\(node.name)")
        #expect(try node.store.quarantined() == [], "\(node.name)")
        #expect(try Waiting.unexpected(node) == [], "\(node.name)")
        #expect(try node.store.audit().isClean, "\(node.name)")
    }
}
