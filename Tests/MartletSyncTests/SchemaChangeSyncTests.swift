import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes whose schemas differ for a while.
@Suite struct SchemaChangeSyncTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab(partitions: 2)
        a = try lab.node("a")
        b = try lab.node("b")
    }

    @Test func p28AnAddedColumnPublishesNothing() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x'), ('y')")
        try exchange([a, b])
        try a.foreignWrite("ALTER TABLE trip ADD COLUMN rating INTEGER NOT NULL DEFAULT 3")
        try b.store.alter(sql: "ALTER TABLE trip ADD COLUMN rating INTEGER NOT NULL DEFAULT 3")
        try exchange([a, b])
        #expect(try a.outboxCount() == 1 && b.outboxCount() == 0)
        try a.write("UPDATE trip SET rating = 5 WHERE name = 'x'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                trip name='x' budget=NULL rating=5
                trip name='y' budget=NULL rating=3
                """)
    }

    @Test func anUnknownColumnWaitsForTheMigration() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try exchange([a, b])
        try a.store.alter(sql: "ALTER TABLE trip ADD COLUMN rating INTEGER")
        try a.write("UPDATE trip SET rating = 4")
        try a.write("INSERT INTO trip(name, rating) VALUES ('y', 5); INSERT INTO setting VALUES ('k', 1)")
        try exchange([a, b])
        try expectState(
            b,
            is: """
                setting key='k' value=1
                trip name='x' budget=NULL
                pending unknownSchema
                pending unknownSchema
                """)
        #expect(
            try b.pendingMessages().map(\.text) == [
                "unknownSchema: column trip.rating", "unknownSchema: column trip.rating",
            ])
        try b.restart()
        try b.store.alter(sql: "ALTER TABLE trip ADD COLUMN rating INTEGER")
        try b.consume()
        b.publisher.step()
        try expectBoth(
            a, b,
            are: """
                setting key='k' value=1
                trip name='x' budget=NULL rating=4
                trip name='y' budget=NULL rating=5
                """)
        #expect(try b.outboxCount() == 0)
    }

    /// Only the program has the collation of the index, so that the node can't write to the table.
    @Test(
        arguments: [
            "",
            """
            CREATE TABLE fresh(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL);
            INSERT INTO fresh SELECT * FROM trip; DROP TABLE trip; ALTER TABLE fresh RENAME TO trip;
            """,
        ])
    func changesOfATableThatOnlyItsProgramCanWriteWait(_ rebuild: String) throws {
        var files = StoreConfiguration()
        files.schemaPatience = .milliseconds(100)
        let c = try lab.node("c", files: files)
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try exchange([a, c])
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        let program = try DatabaseQueue(path: c.path, configuration: configuration)
        func run(_ sql: String) throws { try program.writeWithoutTransaction { try $0.execute(sql: sql) } }
        program.inDatabase { db in
            db.add(collation: DatabaseCollation("own") { $0.compare($1) })
        }
        try run("BEGIN; \(rebuild) CREATE UNIQUE INDEX own_name ON trip(name COLLATE own); COMMIT")
        try a.write("UPDATE trip SET budget = 1; INSERT INTO trip(name) VALUES ('y')")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a, c])
        #expect(try c.rows("SELECT key FROM setting") == ["k"])
        #expect(try c.pendingMessages().map(\.text) == ["unknownSchema: table trip", "unknownSchema: table trip"])
        try run("INSERT INTO trip(name) VALUES ('z'); DROP INDEX own_name")
        try program.close()
        try exchange([a, c])
        try expectBoth(
            a, c,
            are: """
                setting key='k' value=1
                trip name='x' budget=1.0
                trip name='y' budget=NULL
                trip name='z' budget=NULL
                """)
    }

    /// Stamping takes more than one commit.
    @Test func aValueOfAnUnknownColumnIsAppliedDespiteALargeBacklog() throws {
        try a.store.alter(sql: "ALTER TABLE trip ADD COLUMN rating INTEGER")
        try a.write("INSERT INTO trip(name, rating) VALUES ('x', 4)")
        try exchange([a, b])
        #expect(try b.pendingMessages().count == 1)
        try b.store.alter(sql: "ALTER TABLE trip ADD COLUMN rating INTEGER")
        for number in 1...2001 { try b.write("INSERT INTO setting VALUES (\(number), 1)") }
        try b.publish()
        #expect(try b.outboxCount() == 2001)
        #expect(try b.rows("SELECT name, rating FROM trip") == ["x|4"])
        #expect(try b.pendingMessages() == [])
    }

    @Test func aNULLIsPendingUntilTheColumnAllowsIt() throws {
        let late = "CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL)"
        let lab = try Lab(late)
        let a = try lab.node("a")
        let b = try lab.node("b", schema: late.replacing("budget REAL", with: "budget REAL NOT NULL"))
        try a.write("INSERT INTO trip(name, budget) VALUES ('x', 1.5)")
        try exchange([a, b])
        // The change is pending as a whole, and later changes are applied.
        try a.write("UPDATE trip SET name = 'y', budget = NULL")
        try a.write("INSERT INTO trip(name) VALUES ('new')")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                trip name='new' budget=NULL
                trip name='y' budget=NULL
                """)
        try expectState(
            b,
            is: """
                trip name='x' budget=1.5
                pending constraint trip name='new'
                pending constraint trip name='y'
                """)
        try a.write("UPDATE trip SET name = 'z' WHERE id = 1")
        try exchange([a, b])
        #expect(try b.rows("SELECT name, budget FROM trip") == ["z|1.5"])
        try b.restart()
        try b.store.alter(
            sql: """
                CREATE TABLE copy(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL);
                INSERT INTO copy SELECT * FROM trip; DROP TABLE trip; ALTER TABLE copy RENAME TO trip
                """)
        try b.consume()
        b.publisher.step()
        try expectBoth(
            a, b,
            are: """
                trip name='new' budget=NULL
                trip name='z' budget=NULL
                """)
    }

    @Test func anUnknownTableWaitsForTheMigration() throws {
        let table = "CREATE TABLE guide(name TEXT PRIMARY KEY NOT NULL, trip INTEGER REFERENCES trip(id))"
        try a.write(table)
        _ = try a.store.attach()
        try a.write("INSERT INTO trip(name) VALUES ('x'); INSERT INTO guide VALUES ('g', 1)")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                guide name='g' trip=->'x'
                trip name='x' budget=NULL
                """)
        try expectState(
            b,
            is: """
                trip name='x' budget=NULL
                pending unknownSchema
                """)
        try b.write(table)
        _ = try b.store.attach()
        b.publisher.step()
        try expectBoth(
            a, b,
            are: """
                guide name='g' trip=->'x'
                trip name='x' budget=NULL
                """)
        #expect(try b.outboxCount() == 0)
    }

    @Test func aRenamedColumnIsMatchedByItsFormerName() throws {
        try a.write("INSERT INTO trip(name, budget) VALUES ('x', 1)")
        try exchange([a, b])
        try b.store.alter(sql: "ALTER TABLE trip RENAME COLUMN budget TO cost")
        try a.write("UPDATE trip SET budget = 2")
        try exchange([a, b])
        try expectState(a, is: "trip name='x' budget=2.0")
        try expectState(b, is: "trip name='x' cost=2.0")
        try b.write("UPDATE trip SET cost = 3")
        try exchange([a, b])
        try expectState(a, is: "trip name='x' budget=3.0")
        try expectState(b, is: "trip name='x' cost=3.0")
        try a.store.alter(sql: "ALTER TABLE trip RENAME COLUMN budget TO cost")
        a.publisher.step()
        try expectBoth(a, b, are: "trip name='x' cost=3.0")
    }

    @Test func aRenamedTableIsMatchedByItsFormerName() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x'); INSERT INTO stop(trip, place) VALUES (1, 'p')")
        try exchange([a, b])
        try b.store.alter(sql: "ALTER TABLE trip RENAME TO journey")
        try a.write("UPDATE trip SET name = 'y'; INSERT INTO stop(trip, place) VALUES (1, 'q')")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                stop trip=->'y' place='p'
                stop trip=->'y' place='q'
                trip name='y' budget=NULL
                """)
        try expectState(
            b,
            is: """
                journey name='y' budget=NULL
                stop trip=->'y' place='p'
                stop trip=->'y' place='q'
                """)
    }

    /// An ID stays as it is (docs/decisions/0011).
    @Test func tablesWithDifferentIdentitiesUnderstandEachOthersRows() throws {
        var request = AttachRequest()
        request.identities = ["person": ["first", "last"]]
        let lab = try Lab(
            "CREATE TABLE person(id INTEGER PRIMARY KEY, first TEXT, last TEXT, UNIQUE(first, last))", request: request)
        let a = try lab.node("a")
        let other = try Lab("CREATE TABLE person(id INTEGER PRIMARY KEY, first TEXT, last TEXT, UNIQUE(first, last))")
        let b = try other.node("b", bus: lab.bus)
        try a.write("INSERT INTO person(first, last) VALUES ('x', 'y')")
        try exchange([a, b])
        try b.write("UPDATE person SET last = 'z'; INSERT INTO person(first, last) VALUES ('u', 'v')")
        try exchange([a, b])
        try a.write("UPDATE person SET last = last || '!'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                person first='u' last='v!'
                person first='x' last='z!'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }
}
