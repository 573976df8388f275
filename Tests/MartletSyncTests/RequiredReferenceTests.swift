import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Rows that refer to each other in columns that may be null by themselves, but not by a `CHECK`.
@Suite struct RequiredReferenceTests {
    private func expectSame(_ nodes: [TestNode], are expected: String) throws {
        try expectAll(nodes, are: expected)
        for node in nodes {
            #expect(try StoreDigest.compute(node.store) == StoreDigest.compute(nodes[0].store))
            #expect(try node.store.audit().isClean, "on \(node.name)")
            #expect(try node.rows("PRAGMA foreign_key_check") == [], "on \(node.name)")
        }
    }

    @Test func rowsThatACheckMakesNeedEachOtherAreInsertedTogether() throws {
        let lab = try Lab(
            """
            CREATE TABLE pair(id INTEGER PRIMARY KEY, name TEXT,
              other INTEGER REFERENCES pair(id) DEFERRABLE INITIALLY DEFERRED, CHECK (other IS NOT NULL));
            CREATE TABLE knot(name TEXT PRIMARY KEY NOT NULL,
              next TEXT REFERENCES knot(name) DEFERRABLE INITIALLY DEFERRED, CHECK (next IS NOT NULL));
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write(
            """
            INSERT INTO pair VALUES (1, 'left', 2), (2, 'right', 1);
            INSERT INTO knot VALUES ('x', 'y'), ('y', 'z'), ('z', 'x');
            """)
        try exchange([a, b])
        let knots = """
            knot name='x' next='y'
            knot name='y' next='z'
            knot name='z' next='x'
            """
        try expectSame(
            [a, b],
            are: """
                \(knots)
                pair name='left' other=->'right'
                pair name='right' other=->'left'
                """)
        // One of them goes, and comes back.
        try b.foreignWrite("DELETE FROM pair WHERE name = 'left'")
        try exchange([a, b])
        try expectSame(
            [a, b],
            are: """
                \(knots)
                pending missingTarget pair name='right' other=->?
                """)
        try b.foreignWrite("DELETE FROM knot WHERE name = 'z'")
        try exchange([a, b])
        try a.foreignWrite("INSERT INTO knot VALUES ('z', 'y')")
        try exchange([a, b])
        try expectSame(
            [a, b],
            are: """
                knot name='x' next='y'
                knot name='y' next='z'
                knot name='z' next='y'
                pending missingTarget pair name='right' other=->?
                """)
    }

    /// The rows come in two transactions, from two nodes, and in both orders.
    @Test func rowsOfTwoNodesThatACheckMakesNeedEachOtherAreInsertedTogether() throws {
        let lab = try Lab(
            """
            CREATE TABLE team(name TEXT PRIMARY KEY NOT NULL, lead TEXT REFERENCES person(name), note TEXT
              CHECK (lead IS NOT NULL OR note IS NULL));
            CREATE TABLE person(name TEXT PRIMARY KEY NOT NULL, team TEXT NOT NULL REFERENCES team(name),
              friend TEXT REFERENCES person(name), CHECK (friend IS NOT NULL));
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.foreignWrite("INSERT INTO team VALUES ('red', 'Ann', 'n')")
        try a.foreignWrite("INSERT INTO person VALUES ('Ann', 'red', 'Bob')")
        try b.foreignWrite("INSERT INTO person VALUES ('Bob', 'red', 'Ann')")
        try exchange([a, b])
        let late = try lab.node("late")
        try exchange([a, b, late])
        try expectSame(
            [a, b, late],
            are: """
                person name='Ann' team='red' friend='Bob'
                person name='Bob' team='red' friend='Ann'
                team name='red' lead='Ann' note='n'
                """)
    }
}
