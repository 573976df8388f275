import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that migrate from an early version of a schema to a late one at different times, and a node that starts with
/// the late one.
@Suite struct MigratingNodesTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode
    let fresh: TestNode

    init() throws {
        lab = try Lab(Trips.early, partitions: 3)
        a = try lab.node("a") { $0.encoding = .json }
        b = try lab.node("b")
        fresh = try Self.freshNode("fresh", lab)
    }

    private static func freshNode(_ name: String, _ lab: Lab) throws -> TestNode {
        try TestNode(name, bus: lab.bus, directory: lab.directory, schema: Trips.late, attach: Trips.fresh)
    }

    /// The changes of the newest message.
    private func sentChanges() throws -> [[String: Any]] {
        let message = try #require(try lab.messages().max { $0.timestamp < $1.timestamp })
        let object = try JSONSerialization.jsonObject(with: Data(message.payload)) as? [String: Any]
        return try #require(object?["changes"] as? [[String: Any]])
    }

    private func expectAllEqual(_ expected: [String]) throws {
        let late = try Self.freshNode("late\(UUID())", lab)
        try late.consume()
        let nodes = [a, b, fresh, late]
        for node in nodes { #expect(try Trips.contents(node) == expected, "\(node.name)") }
        try expectAgreement(nodes)
    }

    @Test func nodesConvergeOnceAllHaveMigratedAndLoseNothing() throws {
        try a.write(
            """
            INSERT INTO trip(name, start_date, end_date, place) VALUES ('rome', 1, 2, 'x'), ('oslo', 3, 4, 'y');
            INSERT INTO item(title, trip) VALUES ('hat', 1), ('map', 2);
            INSERT INTO tagged VALUES (1, 'warm'), (2, 'cold');
            """)
        try exchange([a, b, fresh])
        #expect(
            try Trips.contents(fresh) == ["oslo|3.0|4.0|y|Trip|map|cold", "rome|1.0|2.0|x|Trip|hat|warm"])
        // The early nodes' columns arrive under their new names. Rows of the late node arrive on nodes that have all of
        // its columns.
        try fresh.write(
            """
            UPDATE trip SET startDate = 1.5 WHERE name = 'rome'; UPDATE trip SET place = 'z' WHERE name = 'oslo';
            INSERT INTO trip(name, startDate, endDate, kind) VALUES ('bonn', 5, 6, 'BusinessTrip');
            INSERT INTO item(title, trip) SELECT 'pen', id FROM trip WHERE name = 'bonn';
            INSERT INTO tagged SELECT id, 'dull' FROM trip WHERE name = 'bonn';
            """)
        try b.write("UPDATE trip SET end_date = 2.5 WHERE name = 'rome'; DELETE FROM tagged WHERE tag = 'cold'")
        try exchange([a, b, fresh])
        #expect(try a.rows("SELECT name, place FROM trip ORDER BY 1") == ["oslo|z", "rome|x"])
        // One node migrates with unpublished changes.
        try a.write(
            """
            INSERT INTO trip(name, start_date, end_date) VALUES ('kyiv', 7, 8);
            INSERT INTO tagged VALUES (last_insert_rowid(), 'new');
            UPDATE trip SET name = 'roma' WHERE name = 'rome'; UPDATE trip SET place = 'w' WHERE name = 'kyiv';
            """)
        try a.migrateTrips()
        try a.write("UPDATE trip SET place = 'v' WHERE name = 'kyiv'; UPDATE trip SET endDate = 9 WHERE name = 'kyiv'")
        try exchange([a, b, fresh])
        try b.write("INSERT INTO item(title, trip) SELECT 'bag', id FROM trip WHERE name = 'oslo'")
        try b.restart()
        try b.migrateTrips()
        try exchange([a, b, fresh])
        try expectAllEqual([
            "bonn|5.0|6.0|NULL|BusinessTrip|pen|dull", "kyiv|7.0|9.0|v|Trip|NULL|new",
            "oslo|3.0|4.0|z|Trip|bag+map|NULL", "roma|1.5|2.5|x|Trip|hat|warm",
        ])
    }

    @Test func aRowKeepsItsIDWhateverHappensToItsColumns() throws {
        try a.write("INSERT INTO trip(name, start_date, end_date) VALUES ('rome', 1, 2)")
        try exchange([a, b, fresh])
        try a.migrateTrips()
        try a.write("UPDATE trip SET name = 'roma'")
        try a.publish()
        let changes = try sentChanges()
        #expect(changes.count == 1 && changes[0]["kind"] as? String == "CHANGE_KIND_UPDATE")
        #expect((changes[0]["identity"] as? [Any])?.count == 1 && (changes[0]["columns"] as? [Any])?.count == 1)
        try exchange([a, b, fresh])
        #expect(try fresh.rows("SELECT name FROM trip") == ["roma"] && b.rows("SELECT name FROM trip") == ["roma"])
        // The same holds on a node that started with columns as the identity.
        try fresh.write("UPDATE trip SET name = 'rom', startDate = 3; INSERT INTO item(title, trip) VALUES ('hat', 1)")
        try b.migrateTrips()
        try exchange([a, b, fresh])
        try expectAllEqual(["rom|3.0|2.0|NULL|Trip|hat|NULL"])
        try fresh.write("DELETE FROM trip")
        let tombstone = try #require(try fresh.store.fetchHistory().last?.changes.first { $0.entity == "trip" })
        #expect(tombstone.tombstone["name"] == .text("rom"))
        try exchange([a, b, fresh])
        for node in [a, b] {
            #expect(try node.rows("SELECT title, trip FROM item") == ["hat|NULL"])
            let seen = try #require(
                try node.store.fetchHistory().flatMap(\.changes).last { $0.entity == "trip" && $0.kind == .delete })
            #expect(seen.tombstone == tombstone.tombstone && seen.identity == tombstone.identity)
        }
        // A row that is inserted again is another row, whose ID is made from its columns on every node.
        try a.write("INSERT INTO trip(name, startDate, endDate, place) VALUES ('rom', 3, 2, 'a')")
        try b.write("INSERT INTO trip(name, startDate, endDate, place) VALUES ('rom', 3, 2, 'b')")
        try exchange([a, b, fresh])
        try expectAllEqual(["rom|3.0|2.0|b|Trip|NULL|NULL"])
        #expect(try fresh.parked() == [])
    }

    /// The two rows have different IDs, and claim one unique key if there is one.
    @Test(arguments: [true, false])
    func rowsWithDifferentKindsOfIDsAndTheSameValuesAreDecidedAlike(earlyIsNewer: Bool) throws {
        let values = "VALUES ('rome', 1, 2, "
        if !earlyIsNewer { try a.write("INSERT INTO trip(name, start_date, end_date, place) \(values) 'early')") }
        try fresh.write("INSERT INTO trip(name, startDate, endDate, place) \(values) 'late')")
        if earlyIsNewer { try a.write("INSERT INTO trip(name, start_date, end_date, place) \(values) 'early')") }
        try a.write("INSERT INTO item(title, trip) VALUES ('hat', 1)")
        try fresh.write("INSERT INTO item(title, trip) VALUES ('map', 1)")
        try exchange([a, b, fresh])
        try a.migrateTrips()
        try exchange([a, b, fresh])
        try b.migrateTrips()
        try exchange([a, b, fresh])
        let winner = earlyIsNewer ? "early" : "late"
        try expectAllEqual(["rome|1.0|2.0|\(winner)|Trip|\(earlyIsNewer ? "hat" : "map")|NULL"])
        for node in [a, b, fresh] { #expect(try node.parked() == ["unique"]) }
        // The losing row comes back when the winner is deleted, with the rows that refer to it.
        try b.write("DELETE FROM trip")
        try exchange([a, b, fresh])
        try expectAllEqual([
            "rome|1.0|2.0|\(earlyIsNewer ? "late" : "early")|Trip|\(earlyIsNewer ? "map" : "hat")|NULL"
        ])
    }

    /// The log was pruned, and changes before and after that were never stamped.
    @Test func historyPrunedBeforePublishingKeepsItsRowIDs() throws {
        try a.write("INSERT INTO trip(name, start_date, end_date) VALUES ('rome', 1, 2)")
        try a.write("INSERT INTO trip(name, start_date, end_date) VALUES ('oslo', 1, 2)")
        try exchange([a, b, fresh])
        try a.migrateTrips()
        try a.write("UPDATE trip SET name = 'roma' WHERE name = 'rome'")
        try a.write("INSERT INTO trip(name, startDate, endDate) VALUES ('rome', 1, 2)")
        try a.publish()
        _ = try a.store.deleteHistory(through: try #require(try a.store.lastToken()))
        try a.write("UPDATE trip SET place = 'p' WHERE name IN ('rome', 'roma'); DELETE FROM trip WHERE name = 'oslo'")
        try b.migrateTrips()
        try exchange([a, b, fresh])
        try expectAllEqual(["roma|1.0|2.0|p|Trip|NULL|NULL", "rome|1.0|2.0|p|Trip|NULL|NULL"])
    }
}
