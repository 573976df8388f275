import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite struct ReferenceTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab(partitions: 2)
        a = try lab.node("a")
        b = try lab.node("b")
    }

    private func expectWhole(_ nodes: [TestNode]) throws {
        for node in nodes { #expect(try node.rows("PRAGMA foreign_key_check") == []) }
    }

    @Test func aReferenceToADeletedRowIsPendingOnEveryNode() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try exchange([a, b])
        try a.write("DELETE FROM trip")
        try b.write("INSERT INTO stop(trip, place) VALUES (1, 'p'); INSERT INTO note(trip, text) VALUES (1, 'n')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                note trip=NULL text='n'
                pending missingTarget note trip=->?
                pending missingTarget stop trip=->? place='p'
                """)
        try expectWhole([a, b])
        try b.write("UPDATE note SET text = 'm'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                note trip=NULL text='m'
                pending missingTarget note trip=->?
                pending missingTarget stop trip=->? place='p'
                """)
        try a.write("DELETE FROM note")
        try exchange([a, b])
        try expectBoth(a, b, are: "pending missingTarget stop trip=->? place='p'")
    }

    @Test func aPendingReferenceIsDroppedWhenItIsSetAgain() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try a.publish()
        let parent = try lab.messages()
        try b.consume()
        try b.write("INSERT INTO note(trip, text) VALUES (1, 'n')")
        try b.publish()
        let child = try lab.messages().filter { !parent.map(\.key).contains($0.key) }
        let c = try lab.node("c")
        try c.receive(child)
        try c.write("INSERT INTO trip(name) VALUES ('other'); UPDATE note SET trip = 1, text = 'mine'")
        try c.publish()
        try c.receive(parent)
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                note trip=->'other' text='mine'
                trip name='other' budget=NULL
                trip name='x' budget=NULL
                """)
    }

    @Test func p176AnUpdateOfARowThatWaitsForARowOfADroppedTableHoldsUpNothing() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try a.publish()
        let parent = try lab.messages()
        try b.consume()
        try b.write("INSERT INTO stop(trip, place) VALUES (1, 'p')")
        try b.publish()
        let count = try lab.messages().count
        let child = try lab.messages().filter { !parent.map(\.key).contains($0.key) }
        let c = try lab.node("c")
        try c.receive(child)
        try expectState(c, is: "pending missingTarget stop trip=->? place='p'")
        try c.foreignWrite("DROP TABLE trip")
        try b.write("UPDATE stop SET place = 'q'; INSERT INTO setting VALUES ('k', 1)")
        try b.publish()
        #expect(try lab.messages().count > count)
        try c.receive(try lab.messages().filter { !parent.map(\.key).contains($0.key) })
        // Later changes are not held up.
        #expect(try c.rows("SELECT key FROM setting") == ["k"])
        try c.foreignWrite("CREATE TABLE trip(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, budget REAL)")
        try c.consume()
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                setting key='k' value=1
                stop trip=->'x' place='q'
                trip name='x' budget=NULL
                """)
    }

    @Test func aReplacedRowDropsItsPendingReference() throws {
        let c = try lab.node("c")
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try a.publish()
        let parent = try lab.messages()
        try b.consume()
        try b.write("INSERT INTO note(id, trip, text) VALUES (3, 1, 'n')")
        try b.publish()
        try c.receive(try lab.messages().filter { !parent.map(\.key).contains($0.key) })
        try c.foreignWrite("INSERT OR REPLACE INTO note(id, text) VALUES (3, 'replaced')")
        try c.publish()
        try c.receive(parent)
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                note trip=NULL text='replaced'
                trip name='x' budget=NULL
                """)
    }

    @Test func aRequiredReferenceOfARowToItselfIsNoObstacle() throws {
        let lab = try Lab(
            "CREATE TABLE node(id INTEGER PRIMARY KEY, root INTEGER NOT NULL REFERENCES node(id), name TEXT)")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO node VALUES (4, 4, 'top'), (5, 4, 'below')")
        try b.write("INSERT INTO node VALUES (4, 4, 'other')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                node root=->'other' name='other'
                node root=->'top' name='below'
                node root=->'top' name='top'
                """)
    }

    @Test func aChildWithACheckOnItsReferenceBecomesPending() throws {
        let lab = try Lab(
            """
            CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE stop(id INTEGER PRIMARY KEY, trip INTEGER REFERENCES trip(id) ON DELETE CASCADE
              CHECK (trip IS NOT NULL));
            """)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO trip VALUES (1, 'x')")
        try exchange([a, b])
        try a.write("DELETE FROM trip")
        try b.write("INSERT INTO stop VALUES (1, 1)")
        try exchange([a, b])
        try expectBoth(a, b, are: "pending missingTarget stop trip=->?")
    }

    @Test func parentsComeBackWithAllRowsThatWaitedForThem() throws {
        let lab = try Lab(
            """
            CREATE TABLE root(name TEXT PRIMARY KEY NOT NULL, value);
            CREATE TABLE branch(id INTEGER PRIMARY KEY, root TEXT NOT NULL REFERENCES root(name) ON DELETE CASCADE);
            CREATE TABLE leaf(id INTEGER PRIMARY KEY, branch INTEGER NOT NULL REFERENCES branch(id) ON DELETE CASCADE,
              word TEXT);
            """, partitions: 2)
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO root VALUES ('r', 1)")
        try exchange([a, b])
        try a.write("DELETE FROM root")
        try b.write("INSERT INTO branch VALUES (1, 'r'); INSERT INTO leaf VALUES (1, 1, 'w')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                pending missingTarget branch root='r'
                pending missingTarget leaf branch=->? word='w'
                """)
        try a.restart()
        try a.write("INSERT INTO root VALUES ('r', 2)")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                branch root='r'
                leaf branch=->'r' word='w'
                root name='r' value=2
                """)
    }
}

extension ReferenceTests {
    /// When SQLite enforces the key, it treats '1' as 1. So do other nodes, on which the row has another number.
    @Test(arguments: ["TEXT", "VARCHAR(36)", "CLOB"])
    func p110AReferenceMayHoldTheNumberAsText(type: String) throws {
        let lab = try Lab(
            """
            CREATE TABLE par(id INTEGER PRIMARY KEY, n TEXT);
            CREATE TABLE kid(id INTEGER PRIMARY KEY, p \(type) REFERENCES par(id), v TEXT);
            CREATE TABLE pair(p \(type) NOT NULL REFERENCES par(id), t TEXT NOT NULL, v TEXT, PRIMARY KEY (p, t));
            """)
        let nodes = [try lab.node("a"), try lab.node("b")]
        for node in nodes {
            try node.write(
                """
                INSERT INTO par(n) VALUES ('of \(node.name)'); INSERT INTO kid(p, v) VALUES ('1', '\(node.name)');
                INSERT INTO pair VALUES ('1', 'x', '\(node.name)')
                """)
        }
        try exchange(nodes)
        try expectAll(
            nodes,
            are: """
                kid p=->'of a' v='a'
                kid p=->'of b' v='b'
                pair p=->'of a' t='x' v='a'
                pair p=->'of b' t='x' v='b'
                par n='of a'
                par n='of b'
                """)
        try expectWhole(nodes)
        try nodes[1].write("UPDATE pair SET v = 'by b'; UPDATE kid SET v = 'by b' WHERE v = 'a'")
        try exchange(nodes)
        try expectAll(
            nodes,
            are: """
                kid p=->'of a' v='by b'
                kid p=->'of b' v='b'
                pair p=->'of a' t='x' v='by b'
                pair p=->'of b' t='x' v='by b'
                par n='of a'
                par n='of b'
                """)
        for node in nodes { #expect(try node.store.audit().isClean) }
        let digests = try nodes.map { try StoreDigest.compute($0.store) }
        #expect(digests[0] == digests[1])
    }
}
