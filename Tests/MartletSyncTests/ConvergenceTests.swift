import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite struct ConvergenceTests {
    let directory: TemporaryDirectory
    let bus = InMemoryBus(topic: "t", partitionCount: 3)

    static let schema = """
        CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, destination TEXT, budget REAL);
        CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER REFERENCES trip(id) ON DELETE CASCADE, place TEXT);
        CREATE INDEX stop_trip ON stop(trip);
        """

    init() throws { directory = try TemporaryDirectory() }

    func node(_ name: String) throws -> TestNode {
        try TestNode(name, bus: bus, directory: directory, schema: Self.schema)
    }

    @Test func anInsertOnOneNodeBecomesARowOnAnother() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO trip(name, destination) VALUES ('Alps', 'Zermatt')", author: "app")
        try exchange([a, b])
        #expect(try b.rows("SELECT name, destination, budget FROM trip") == ["Alps|Zermatt|NULL"])
        let history = try b.store.fetchHistory()
        #expect(history.last?.author == TransactionAuthor.sync)
        #expect(history.last?.origin?.author == "app")
        #expect(history.last?.origin?.sequence == 1)
        #expect(
            try b.store.fetchHistory(HistoryQuery(author: .notEqual(TransactionAuthor.sync))).flatMap(\.changes).isEmpty
        )
    }

    @Test func rowsWithTheSameIntegerKeyStaySeparate() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO trip(name) VALUES ('from a'); INSERT INTO stop(trip, place) VALUES (1, 'stop of a')")
        try b.write("INSERT INTO trip(name) VALUES ('from b'); INSERT INTO stop(trip, place) VALUES (1, 'stop of b')")
        try exchange([a, b])
        for node in [a, b] {
            #expect(
                try node.rows("SELECT t.name, s.place FROM trip t JOIN stop s ON s.trip = t.id ORDER BY 1")
                    == ["from a|stop of a", "from b|stop of b"])
        }
    }

    @Test func editsOfDifferentColumnsBothSurviveAndTheLaterEditOfOneColumnWins() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO trip(name) VALUES ('Alps')")
        try exchange([a, b])
        try a.write("UPDATE trip SET destination = 'Bern'")
        try b.write("UPDATE trip SET budget = 12.5")
        try exchange([a, b])
        for node in [a, b] {
            #expect(try node.rows("SELECT name, destination, budget FROM trip") == ["Alps|Bern|12.5"])
        }
        try a.write("UPDATE trip SET name = 'earlier'")
        try b.write("UPDATE trip SET name = 'later'")
        try exchange([a, b])
        for node in [a, b] { #expect(try node.rows("SELECT name FROM trip") == ["later"]) }
        for node in [a, b] { #expect(try node.store.conflicts().map(\.value) == [.text("earlier")]) }
    }

    @Test func aDeleteReachesTheOtherNodeWithItsCascades() throws {
        let a = try node("a")
        let b = try node("b")
        try a.write("INSERT INTO trip(name) VALUES ('Alps'); INSERT INTO stop(trip, place) VALUES (1, 'x'), (1, 'y')")
        try exchange([a, b])
        #expect(try b.rows("SELECT count(*) FROM stop") == ["2"])
        try b.write("DELETE FROM trip")
        try exchange([a, b])
        #expect(try a.rows("SELECT (SELECT count(*) FROM trip), (SELECT count(*) FROM stop)") == ["0|0"])
    }
}
