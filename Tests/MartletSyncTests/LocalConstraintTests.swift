import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Programs write past constraints on one node, or while changes are pending there: the result is the same on every
/// node.
@Suite(.timeLimit(.minutes(5))) struct LocalConstraintTests {
    func expectSame(
        _ nodes: [TestNode], _ sql: String, _ expected: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for node in nodes {
            #expect(try node.rows(sql) == expected, "on \(node.name)", sourceLocation: sourceLocation)
            #expect(try node.rows("PRAGMA foreign_key_check") == [], "on \(node.name)", sourceLocation: sourceLocation)
            #expect(try node.store.audit().isClean, "on \(node.name)", sourceLocation: sourceLocation)
        }
        let digests = try nodes.map { try StoreDigest.compute($0.store) }
        for digest in digests { #expect(digest == digests[0], sourceLocation: sourceLocation) }
    }

    func pair(_ schema: String, request: AttachRequest = .init()) throws -> (Lab, [TestNode]) {
        let lab = try Lab(schema, request: request)
        return (lab, [try lab.node("a"), try lab.node("b")])
    }

    /// The nodes, and a late joiner that reads everything backwards.
    func withLate(_ lab: Lab, _ nodes: [TestNode]) throws -> [TestNode] {
        try exchange(nodes)
        let late = try lab.node("late")
        for message in try lab.messages().reversed() { try late.receive([message]) }
        return nodes + [late]
    }

    // MARK: Pending changes of a row

    @Test func p67ARowThatIsDeletedLocallyIsNoLongerPending() throws {
        let (lab, nodes) = try pair(
            """
            CREATE TABLE user(name TEXT PRIMARY KEY NOT NULL, place INT);
            CREATE UNIQUE INDEX p ON user(coalesce(place, 0));
            """)
        try nodes[0].write("INSERT INTO user VALUES ('x', 1)")
        try nodes[1].write("INSERT INTO user VALUES ('y', 1)")
        try exchange(nodes)
        for node in nodes { #expect(try node.parked() == ["unique"]) }
        // The row is inserted again and displaced, both before Martlet looks.
        try nodes[0].foreignWrite("INSERT INTO user VALUES ('x', 5); REPLACE INTO user VALUES ('z', 5)")
        let all = try withLate(lab, nodes)
        try expectSame(all, "SELECT name, place FROM user ORDER BY 1", ["y|1", "z|5"])
        for node in all { #expect(try node.store.parked() == [], "on \(node.name)") }
    }

    @Test func p67ADeleteOverrulesPendingChangesOfTheRowAndIsJournaled() throws {
        let lab = try Lab("CREATE TABLE range(id INTEGER PRIMARY KEY, lo INT, hi INT)")
        let a = try lab.node("a")
        let strict = try lab.node("strict", schema: ConstraintTests.range.replacing("name TEXT, ", with: ""))
        try a.write("INSERT INTO range(lo, hi) VALUES (1, 10)")
        try exchange([a, strict])
        try a.write("UPDATE range SET lo = 30")
        try exchange([a, strict])
        #expect(try strict.parked() == ["constraint"])
        try strict.write("DELETE FROM range")
        try exchange([a, strict])
        #expect(try strict.store.parked() == [])
        #expect(try strict.conflicts() == ["deleted|30"])
        #expect(try a.rows("SELECT * FROM range") == [])
    }

    // MARK: Rows without an ID

    @Test func p68ARowWithoutAnIDGivesWayToARowOfOtherNodes() throws {
        let (_, nodes) = try pair("CREATE TABLE item(sku TEXT PRIMARY KEY, label TEXT UNIQUE, note TEXT)")
        try nodes[0].write("INSERT INTO item VALUES (NULL, 'l', 'mine'), (NULL, 'm', 'too')")
        try nodes[1].write("INSERT INTO item VALUES ('s', 'l', 'theirs')")
        try exchange(nodes)
        #expect(try nodes[0].rows("SELECT sku, note FROM item ORDER BY label") == ["s|theirs", "NULL|too"])
        #expect(try nodes[0].parked() == ["unique"])
        #expect(try nodes[0].store.parked().first?.values["note"] == .text("mine"))
        #expect(try nodes[0].store.conflicts().map(\.kind) == [.unique])
        #expect(try StoreDigest.compute(nodes[0].store) == StoreDigest.compute(nodes[1].store))
        // The row comes back when its key is free, and is as local as before.
        try nodes[1].write("DELETE FROM item")
        try exchange(nodes)
        #expect(try nodes[0].rows("SELECT sku, note FROM item ORDER BY label") == ["NULL|mine", "NULL|too"])
        #expect(try nodes[0].parked() == [])
        #expect(try nodes[1].rows("SELECT * FROM item") == [])
        // From then on, it is a row like any other.
        try nodes[0].write("UPDATE item SET sku = 't' WHERE note = 'mine'")
        try exchange(nodes)
        #expect(try nodes[1].rows("SELECT * FROM item") == ["t|l|mine"])
        #expect(try nodes[0].store.audit().isClean)
    }

    @Test func p68ARowWithoutAnIDReleasesATargetThatLeaves() throws {
        let (_, nodes) = try pair(
            """
            CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE tag(name TEXT PRIMARY KEY NOT NULL);
            CREATE TABLE item(sku TEXT PRIMARY KEY, owner INTEGER REFERENCES owner(id),
              tag TEXT NOT NULL REFERENCES tag(name));
            """)
        try nodes[1].write("INSERT INTO owner VALUES (1, 'Ann'), (2, 'Ben'); INSERT INTO tag VALUES ('red'), ('blue')")
        try exchange(nodes)
        try nodes[0].write(
            """
            INSERT INTO item SELECT NULL, id, 'red' FROM owner;
            INSERT INTO item SELECT NULL, id, 'blue' FROM owner WHERE name = 'Ben';
            """)
        try nodes[1].write("DELETE FROM owner WHERE name = 'Ann'; DELETE FROM tag WHERE name = 'blue'")
        try exchange(nodes)
        #expect(try nodes[0].rows("PRAGMA foreign_key_check") == [])
        #expect(
            try nodes[0].rows("SELECT name, tag FROM item LEFT JOIN owner ON owner.id = owner ORDER BY 1")
                == ["NULL|red", "Ben|red"])
        #expect(try nodes[0].conflicts().map { $0.prefix(8) } == ["deleted|"])
        #expect(try nodes[0].parked() == ["missingTarget"])
        #expect(try StoreDigest.compute(nodes[0].store) == StoreDigest.compute(nodes[1].store))
        try nodes[1].write("INSERT INTO tag VALUES ('blue')")
        try exchange(nodes)
        #expect(try nodes[0].rows("SELECT count(*) FROM item WHERE tag = 'blue'") == ["1"])
        #expect(try nodes[0].store.parked() == [])
        #expect(try nodes[0].store.audit().isClean)
    }

    // MARK: Foreign keys that a program doesn't enforce

    private static let users = """
        CREATE TABLE user(id INTEGER PRIMARY KEY, email TEXT UNIQUE);
        CREATE TABLE item(sku TEXT PRIMARY KEY NOT NULL, owner INTEGER REFERENCES user(id));
        CREATE TABLE mail(id INTEGER PRIMARY KEY, to_ TEXT NOT NULL REFERENCES user(email));
        """

    func users() throws -> (Lab, [TestNode]) {
        let (lab, nodes) = try pair(Self.users)
        try nodes[0].write(
            """
            INSERT INTO user VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO item VALUES ('x', 3), ('y', 2);
            INSERT INTO mail VALUES (1, 'c'), (2, 'b');
            """)
        try exchange(nodes)
        return (lab, nodes)
    }

    static let owners =
        """
        SELECT sku, email FROM item LEFT JOIN user ON user.id = owner UNION ALL SELECT 'mail', to_ FROM mail
          ORDER BY 1, 2
        """

    @Test func p69ReferencesToADisplacedRowArePendingOnItsOwnNodeToo() throws {
        let (lab, nodes) = try users()
        try nodes[0].foreignWrite("INSERT OR REPLACE INTO user VALUES (2, 'c')")
        let all = try withLate(lab, nodes)
        try expectSame(all, Self.owners, ["mail|c", "x|NULL", "y|c"])
        for node in all { #expect(try node.parked() == ["missingTarget"], "on \(node.name)") }
    }

    @Test(arguments: [true, false]) func p69ARowThatTakesOverAKeyTakesOverItsReferences(isAtOnce: Bool) throws {
        let (lab, nodes) = try users()
        let statements = ["DELETE FROM user WHERE id = 3", "INSERT INTO user VALUES (3, 'd')"]
        if isAtOnce {
            try nodes[0].foreignWrite(statements.joined(separator: ";"))
        } else {
            for statement in statements { try nodes[0].foreignWrite(statement) }
        }
        let all = try withLate(lab, nodes)
        try expectSame(all, Self.owners, ["mail|b", "x|d", "y|b"])
        for node in all { #expect(try node.parked() == ["missingTarget"], "on \(node.name)") }
    }

    @Test func p69ReferencesFollowARowWhoseKeyChanges() throws {
        let (lab, nodes) = try users()
        try nodes[0].foreignWrite("UPDATE user SET id = 9 WHERE id = 3")
        try expectSame(withLate(lab, nodes), Self.owners, ["mail|b", "mail|c", "x|c", "y|b"])
        // The row that it displaces had other references.
        try nodes[1].foreignWrite(
            "UPDATE OR REPLACE user SET id = (SELECT id FROM user WHERE email = 'b') WHERE email = 'c'")
        try exchange(nodes)
        try expectSame(nodes, Self.owners, ["mail|c", "x|c", "y|c"])
    }

    /// With foreign keys on, too: the reference is valid again when the statement ends.
    @Test(arguments: [true, false]) func p69AReferenceToAReplacedRowRefersToTheNewRow(enforces: Bool) throws {
        let (lab, nodes) = try pair(
            """
            CREATE TABLE thing(id INTEGER PRIMARY KEY, code TEXT, other INTEGER REFERENCES thing(id));
            CREATE TABLE child(id INTEGER PRIMARY KEY REFERENCES thing(id), v REAL);
            CREATE TABLE part(id INTEGER PRIMARY KEY, of INTEGER NOT NULL REFERENCES thing(id));
            """)
        try nodes[1].foreignWrite("INSERT INTO thing(id) VALUES (1); INSERT INTO child(id) VALUES (1)")
        try nodes[1].foreignWrite("INSERT INTO thing VALUES (5, 'of b', 1); INSERT INTO part VALUES (1, 5)")
        try exchange(nodes)
        if enforces {
            try nodes[1].write("REPLACE INTO thing(id) VALUES (1); REPLACE INTO thing VALUES (5, 'new', 5)")
        } else {
            try nodes[1].foreignWrite("REPLACE INTO thing(id) VALUES (1); REPLACE INTO thing VALUES (5, 'new', 5)")
        }
        try exchange(nodes)
        try nodes[0].write("UPDATE child SET v = 7")
        let all = try withLate(lab, nodes)
        try expectSame(all, "SELECT v FROM child JOIN thing USING (id)", ["7.0"])
        try expectSame(
            all, "SELECT code FROM thing AS t JOIN part ON t.id = part.of WHERE t.other = t.id", ["new"])
        for node in all { #expect(try node.store.parked() == [], "on \(node.name)") }
    }

    // MARK: Rows that need several other rows

    @Test func p71RowsThatNeedEachOtherAreInsertedTogether() throws {
        let (lab, nodes) = try pair(
            """
            CREATE TABLE team(id INTEGER PRIMARY KEY, name TEXT UNIQUE,
              lead INTEGER NOT NULL REFERENCES person(id) DEFERRABLE INITIALLY DEFERRED);
            CREATE TABLE person(id INTEGER PRIMARY KEY,
              team INTEGER NOT NULL REFERENCES team(id) DEFERRABLE INITIALLY DEFERRED);
            CREATE TABLE knot(name TEXT PRIMARY KEY NOT NULL,
              next TEXT NOT NULL REFERENCES knot(name) DEFERRABLE INITIALLY DEFERRED);
            """)
        try nodes[0].write(
            """
            INSERT INTO team VALUES (1, 'red', 7); INSERT INTO person VALUES (7, 1), (8, 1);
            INSERT INTO knot VALUES ('a', 'b'), ('b', 'c'), ('c', 'a');
            """)
        // Two programs that don't enforce foreign keys write them, in two transactions.
        try nodes[1].foreignWrite("INSERT INTO team VALUES (1, 'blue', 9)")
        try nodes[1].foreignWrite("INSERT INTO person VALUES (9, 1)")
        let all = try withLate(lab, nodes)
        let people = """
            SELECT t.name, count(*) FROM team t JOIN person p ON p.team = t.id GROUP BY 1
            UNION ALL SELECT k.name, n.name FROM knot k JOIN knot n ON n.name = k.next ORDER BY 1
            """
        try expectSame(all, people, ["a|b", "b|c", "blue|1", "c|a", "red|2"])
        for node in all { #expect(try node.store.parked() == [], "on \(node.name)") }
        // A row that is deleted takes the others along, and a row that comes back brings them back.
        try nodes[1].foreignWrite("DELETE FROM knot WHERE name = 'c'")
        try exchange(nodes)
        try expectSame(nodes, "SELECT name FROM knot", [])
        try nodes[0].foreignWrite("INSERT INTO knot VALUES ('c', 'b')")
        try exchange(nodes)
        try expectSame(nodes, "SELECT name, next FROM knot ORDER BY 1", ["a|b", "b|c", "c|b"])
    }

    /// The team's name is taken: its lead is pending, too, and both are back when the name is free.
    @Test func p71ACircleIsPendingIfOneOfItsRowsLosesAKey() throws {
        let (lab, nodes) = try pair(
            """
            CREATE TABLE team(id INTEGER PRIMARY KEY, name TEXT UNIQUE, lead INTEGER NOT NULL REFERENCES person(id));
            CREATE TABLE person(id INTEGER PRIMARY KEY, team INTEGER NOT NULL REFERENCES team(id));
            """)
        for (index, node) in nodes.enumerated() {
            try node.foreignWrite(
                "INSERT INTO team VALUES (1, 'red', \(index)); INSERT INTO person VALUES (\(index), 1)")
        }
        let all = try withLate(lab, nodes)
        try expectSame(all, "SELECT t.name, count(*) FROM team t JOIN person p ON p.team = t.id GROUP BY 1", ["red|1"])
        for node in all { #expect(try node.parked().sorted() == ["missingTarget", "unique"], "on \(node.name)") }
        try nodes[1].foreignWrite("UPDATE team SET name = 'blue'")
        try exchange(nodes)
        try expectSame(nodes, "SELECT name FROM team ORDER BY 1", ["blue", "red"])
        for node in nodes { #expect(try node.store.parked() == [], "on \(node.name)") }
    }

    /// Whichever of its two targets arrives first is enough for the row.
    @Test func p72ARowThatNeedsEitherOfTwoTargetsIsInsertedWithTheFirst() throws {
        let lab = try Lab(
            """
            CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE pet(id INTEGER PRIMARY KEY, mine INTEGER REFERENCES owner(id),
              yours INTEGER REFERENCES owner(id),
              CHECK (mine IS NOT NULL OR yours IS NOT NULL));
            """)
        let a = try lab.node("a")
        for sql in [
            "INSERT INTO owner VALUES (1, 'Ann')", "INSERT INTO owner VALUES (2, 'Ben')",
            "INSERT INTO pet VALUES (1, 1, 2)",
        ] { try a.write(sql) }
        try a.publish()
        let messages = try lab.messages()
        for (name, owner) in [(0, "Ann"), (1, "Ben")] {
            let late = try lab.node("late\(name)")
            try late.receive([messages[2]])
            #expect(try late.parked() == ["missingTarget"])
            try late.receive([messages[name]])
            #expect(try late.rows("SELECT name FROM pet JOIN owner ON owner.id IN (mine, yours)") == [owner])
            #expect(try late.parked() == [])
        }
    }

    /// The row is pending for the same reason wherever it was before: first for its target, and then for its key.
    @Test func p72ARowThatLacksBothItsKeyAndItsTargetWaitsForTheTarget() throws {
        let (lab, nodes) = try pair(
            """
            CREATE TABLE shop(name TEXT PRIMARY KEY NOT NULL);
            CREATE TABLE seat(id INTEGER PRIMARY KEY, shop TEXT NOT NULL REFERENCES shop(name), number INT UNIQUE);
            """)
        try nodes[0].write("INSERT INTO shop VALUES ('s'), ('t')")
        try exchange(nodes)
        try nodes[0].write("INSERT INTO seat VALUES (1, 's', 1)")
        try nodes[1].write("INSERT INTO seat VALUES (1, 't', 1)")
        try exchange(nodes)
        for node in nodes { #expect(try node.parked() == ["unique"]) }
        try nodes[0].write("DELETE FROM shop WHERE name = 's'")
        let all = try withLate(lab, nodes)
        try expectSame(all, "SELECT shop FROM seat", ["t"])
        for node in all { #expect(try node.parked() == ["missingTarget"], "on \(node.name)") }
    }

    @Test func p72APendingReferenceThatIsOverwrittenLocallyIsJournaled() throws {
        let (_, nodes) = try pair(
            """
            CREATE TABLE shop(name TEXT PRIMARY KEY NOT NULL);
            CREATE TABLE seat(id INTEGER PRIMARY KEY, shop TEXT REFERENCES shop(name));
            """)
        try nodes[0].write("INSERT INTO shop VALUES ('s'), ('t')")
        try exchange(nodes)
        try nodes[0].write("INSERT INTO seat VALUES (1, 's')")
        try nodes[1].write("DELETE FROM shop WHERE name = 's'")
        try exchange(nodes)
        try expectSame(nodes, "SELECT shop FROM seat", ["NULL"])
        try nodes[1].write("UPDATE seat SET shop = 't'")
        try exchange(nodes)
        try expectSame(nodes, "SELECT shop FROM seat", ["t"])
        #expect(try nodes[1].conflicts() == ["attribute|s"])
    }

    /// The same where the row's ID is made from its target, and the key from an expression.
    @Test func p72ARowWithAnIDFromADeletedTargetWaitsForIt() throws {
        let (lab, nodes) = try pair(
            """
            CREATE TABLE t1(id INTEGER PRIMARY KEY, a INT UNIQUE);
            CREATE TABLE t2(id INTEGER PRIMARY KEY REFERENCES t1(id), b TEXT NOT NULL);
            CREATE UNIQUE INDEX i1 ON t2(substr(b, 1, 2));
            """)
        try nodes[1].write("INSERT INTO t1(a) VALUES (0); INSERT INTO t2 VALUES (1, 'k3')")
        try nodes[0].write("INSERT INTO t1(id) VALUES (1); INSERT INTO t2 VALUES (1, 'k3')")
        try nodes[0].write("INSERT INTO t1(a) VALUES (0)")
        let all = try withLate(lab, nodes)
        try expectSame(all, "SELECT t1.a, b FROM t1 LEFT JOIN t2 USING (id) ORDER BY 1", ["NULL|k3", "0|NULL"])
        for node in all { #expect(try node.parked().sorted() == ["missingTarget", "unique"], "on \(node.name)") }
    }

    @Test func p73AConflictingRowIsKnownByItsKeyOfRealNumbers() throws {
        let (lab, nodes) = try pair("CREATE TABLE t(k TEXT, l REAL, c TEXT UNIQUE, PRIMARY KEY (k, l))")
        try nodes[0].write("INSERT INTO t VALUES ('a', 4, 'x')")
        try nodes[1].write("INSERT INTO t VALUES ('b', 2.5, 'x')")
        let all = try withLate(lab, nodes)
        try expectSame(all, "SELECT k, l FROM t", ["b|2.5"])
        for node in all { #expect(try node.parked() == ["unique"], "on \(node.name)") }
        try nodes[1].write("DELETE FROM t")
        try exchange(nodes)
        try expectSame(nodes, "SELECT k, l, typeof(l) FROM t", ["a|4.0|real"])
    }

    @Test func p73ARowWithoutAnIDAndWithAKeyOfRealNumbersGivesWay() throws {
        let (lab, nodes) = try pair("CREATE TABLE t(k REAL PRIMARY KEY, c TEXT UNIQUE)")
        try nodes[0].write("INSERT INTO t VALUES (1.5, 'x')")
        try nodes[1].write("INSERT INTO t VALUES (NULL, 'x')")
        let all = try withLate(lab, nodes)
        try expectSame(all, "SELECT k, c FROM t", ["1.5|x"])
        #expect(try nodes[1].parked() == ["unique"])
    }
}
