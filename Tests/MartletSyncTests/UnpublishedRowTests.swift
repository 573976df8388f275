import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows from before their table was attached, which are published later.
@Suite struct UnpublishedRowTests {
    private static let schema = """
        CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT, budget REAL);
        CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER NOT NULL REFERENCES trip(id), place TEXT);
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value);
        """
    private static let rows = """
        INSERT INTO trip VALUES (1, 'Alps', 10), (2, 'Coast', 20);
        INSERT INTO stop VALUES (1, 2, 'Brest');
        INSERT INTO setting VALUES ('theme', 'dark');
        """
    private let lab: Lab
    private let a: TestNode
    private let b: TestNode

    init() throws {
        lab = try Lab(Self.schema)
        a = try lab.node("a", schema: Self.schema + Self.rows)
        b = try lab.node("b")
    }

    private func attachAgain() throws -> Int {
        var request = AttachRequest()
        request.logsUnpublishedRows = true
        return try a.store.attach(request).unpublishedRowCount
    }

    /// Expects that both nodes have this state, and the same clocks.
    private func expectEqual(_ state: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        try expectBoth(a, b, are: state, sourceLocation: sourceLocation)
        #expect(
            try StoreDigest.compute(a.store) == StoreDigest.compute(b.store), sourceLocation: sourceLocation)
    }

    @Test func unpublishedRowsArePublishedOnRequest() throws {
        try b.write("INSERT INTO trip(name, budget) VALUES ('Fair', 5)")
        try a.write("INSERT INTO trip(name, budget) VALUES ('Aunt', 1)")
        try exchange([a, b])
        try expectState(
            b,
            is: """
                trip name='Aunt' budget=1.0
                trip name='Fair' budget=5.0
                """)
        // A row that is not stamped yet is published anyway.
        try a.write("INSERT INTO setting VALUES ('size', 12)")
        #expect(try attachAgain() == 4)
        #expect(try attachAgain() == 0)
        try exchange([a, b])
        try expectEqual(
            """
            setting key='size' value=12
            setting key='theme' value='dark'
            stop trip=->'Coast' place='Brest'
            trip name='Alps' budget=10.0
            trip name='Aunt' budget=1.0
            trip name='Coast' budget=20.0
            trip name='Fair' budget=5.0
            """)
        #expect(try attachAgain() == 0)
    }

    @Test func aPendingChangeGetsItsRow() throws {
        try a.write("UPDATE trip SET budget = 11 WHERE id = 1")
        try a.write("UPDATE setting SET value = 'light'")
        try a.write("DELETE FROM stop")
        try exchange([a, b])
        try expectState(
            b,
            is: """
                pending missingRow setting key='theme' value='light'
                pending missingRow trip budget=11.0
                """)
        #expect(try attachAgain() == 3)
        try exchange([a, b])
        try expectEqual(
            """
            setting key='theme' value='light'
            trip name='Alps' budget=11.0
            trip name='Coast' budget=20.0
            """)
        // From then on, they are rows like any other.
        try b.write("UPDATE trip SET name = 'Tyrol' WHERE name = 'Alps'")
        try a.write("UPDATE trip SET budget = 12 WHERE id = 1")
        try exchange([a, b])
        try expectEqual(
            """
            setting key='theme' value='light'
            trip name='Coast' budget=20.0
            trip name='Tyrol' budget=12.0
            """)
    }

    @Test func unstampedChangesArePublishedInTheirOrder() throws {
        try a.write("UPDATE trip SET budget = 11 WHERE id = 1")
        try a.write("DELETE FROM trip WHERE id = 1; INSERT INTO trip VALUES (1, 'Another', 3)")
        try a.foreignWrite("UPDATE trip SET id = 9 WHERE id = 2; UPDATE stop SET trip = 9")
        #expect(try attachAgain() == 3)
        try exchange([a, b])
        try expectEqual(
            """
            setting key='theme' value='dark'
            stop trip=->'Coast' place='Brest'
            trip name='Another' budget=3.0
            trip name='Coast' budget=20.0
            """)
    }
}
