import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Programs write past constraints on one node, or while changes are pending there: the result is the same on every
/// node.
@Suite(.timeLimit(.minutes(5))) struct LocalConstraintTests {
    /// Expects this whole state of all nodes, and that they are sound.
    func expectSame(
        _ nodes: [TestNode], are expected: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try expectAll(nodes, are: expected, sourceLocation: sourceLocation)
        try expectSound(nodes, sourceLocation: sourceLocation)
    }

    /// Expects that no reference dangles, that no change is missing from the history, and that the nodes' clocks agree.
    func expectSound(_ nodes: [TestNode], sourceLocation: SourceLocation = #_sourceLocation) throws {
        for node in nodes {
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
        try expectAll(
            nodes,
            are: """
                user name='y' place=1
                pending unique user name='x' place=1
                """)
        // The row is inserted again and displaced, both before Martlet looks.
        try nodes[0].foreignWrite("INSERT INTO user VALUES ('x', 5); REPLACE INTO user VALUES ('z', 5)")
        let all = try withLate(lab, nodes)
        try expectSame(
            all,
            are: """
                user name='y' place=1
                user name='z' place=5
                """)
    }

    @Test func p67ADeleteOverrulesPendingChangesOfTheRowAndIsJournaled() throws {
        let lab = try Lab("CREATE TABLE range(id INTEGER PRIMARY KEY, lo INT, hi INT)")
        let a = try lab.node("a")
        let strict = try lab.node("strict", schema: ConstraintTests.range.replacing("name TEXT, ", with: ""))
        try a.write("INSERT INTO range(lo, hi) VALUES (1, 10)")
        try exchange([a, strict])
        try a.write("UPDATE range SET lo = 30")
        try exchange([a, strict])
        try expectState(a, is: "range lo=30 hi=10")
        try expectState(
            strict,
            is: """
                range lo=1 hi=10
                pending constraint range lo=30
                """)
        try strict.write("DELETE FROM range")
        try exchange([a, strict])
        try expectBoth(a, strict, are: "nothing")
        #expect(try strict.conflicts() == ["deleted|30"])
    }

    // MARK: Rows without an ID

    @Test func p68ARowWithoutAnIDGivesWayToARowOfOtherNodes() throws {
        let (_, nodes) = try pair("CREATE TABLE item(sku TEXT PRIMARY KEY, label TEXT UNIQUE, note TEXT)")
        try nodes[0].write("INSERT INTO item VALUES (NULL, 'l', 'mine'), (NULL, 'm', 'too')")
        try nodes[1].write("INSERT INTO item VALUES ('s', 'l', 'theirs')")
        try exchange(nodes)
        try expectState(
            nodes[0],
            is: """
                item sku='s' label='l' note='theirs'
                item sku=NULL label='m' note='too'
                pending unique item label='l' note='mine'
                """)
        try expectState(nodes[1], is: "item sku='s' label='l' note='theirs'")
        #expect(try nodes[0].store.conflicts().map(\.kind) == [.unique])
        #expect(try StoreDigest.compute(nodes[0].store) == StoreDigest.compute(nodes[1].store))
        // The row comes back when its key is free, and is as local as before.
        try nodes[1].write("DELETE FROM item")
        try exchange(nodes)
        try expectState(
            nodes[0],
            is: """
                item sku=NULL label='l' note='mine'
                item sku=NULL label='m' note='too'
                """)
        try expectState(nodes[1], is: "nothing")
        // From then on, it is a row like any other.
        try nodes[0].write("UPDATE item SET sku = 't' WHERE note = 'mine'")
        try exchange(nodes)
        try expectState(
            nodes[0],
            is: """
                item sku='t' label='l' note='mine'
                item sku=NULL label='m' note='too'
                """)
        try expectState(nodes[1], is: "item sku='t' label='l' note='mine'")
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
        try expectState(
            nodes[0],
            is: """
                item sku=NULL owner=->'Ben' tag='red'
                item sku=NULL owner=NULL tag='red'
                owner name='Ben'
                tag name='red'
                pending missingTarget item owner=->'Ben' tag='blue'
                """)
        try expectState(
            nodes[1],
            is: """
                owner name='Ben'
                tag name='red'
                """)
        #expect(try nodes[0].conflicts().map { $0.prefix(8) } == ["deleted|"])
        #expect(try StoreDigest.compute(nodes[0].store) == StoreDigest.compute(nodes[1].store))
        try nodes[1].write("INSERT INTO tag VALUES ('blue')")
        try exchange(nodes)
        try expectState(
            nodes[0],
            is: """
                item sku=NULL owner=->'Ben' tag='blue'
                item sku=NULL owner=->'Ben' tag='red'
                item sku=NULL owner=NULL tag='red'
                owner name='Ben'
                tag name='blue'
                tag name='red'
                """)
        try expectState(
            nodes[1],
            is: """
                owner name='Ben'
                tag name='blue'
                tag name='red'
                """)
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

    @Test func p69ReferencesToADisplacedRowArePendingOnItsOwnNodeToo() throws {
        let (lab, nodes) = try users()
        try nodes[0].foreignWrite("INSERT OR REPLACE INTO user VALUES (2, 'c')")
        let all = try withLate(lab, nodes)
        try expectSame(
            all,
            are: """
                item sku='x' owner=NULL
                item sku='y' owner=->'c'
                mail to_='c'
                user email='a'
                user email='c'
                pending missingTarget item sku='x' owner=->?
                pending missingTarget mail to_='b'
                """)
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
        try expectSame(
            all,
            are: """
                item sku='x' owner=->'d'
                item sku='y' owner=->'b'
                mail to_='b'
                user email='a'
                user email='b'
                user email='d'
                pending missingTarget mail to_='c'
                """)
    }

    @Test func p69ReferencesFollowARowWhoseKeyChanges() throws {
        let (lab, nodes) = try users()
        try nodes[0].foreignWrite("UPDATE user SET id = 9 WHERE id = 3")
        try expectSame(
            withLate(lab, nodes),
            are: """
                item sku='x' owner=->'c'
                item sku='y' owner=->'b'
                mail to_='b'
                mail to_='c'
                user email='a'
                user email='b'
                user email='c'
                """)
        // The row that it displaces had other references.
        try nodes[1].foreignWrite(
            "UPDATE OR REPLACE user SET id = (SELECT id FROM user WHERE email = 'b') WHERE email = 'c'")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                item sku='x' owner=->'c'
                item sku='y' owner=->'c'
                mail to_='c'
                user email='a'
                user email='c'
                pending missingTarget mail to_='b'
                """)
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
        try expectSame(
            all,
            are: """
                child id=->NULL v=7.0
                part of=->'new'
                thing code='new' other=->'new'
                thing code=NULL other=NULL
                """)
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
        let teams = """
            person team=->'blue'
            person team=->'red'
            person team=->'red'
            team name='blue' lead=->'blue'
            team name='red' lead=->'red'
            """
        try expectSame(
            all,
            are: """
                knot name='a' next='b'
                knot name='b' next='c'
                knot name='c' next='a'
                \(teams)
                """)
        // A row that is deleted takes the others along, and a row that comes back brings them back.
        try nodes[1].foreignWrite("DELETE FROM knot WHERE name = 'c'")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                \(teams)
                pending missingTarget knot name='a' next='b'
                pending missingTarget knot name='b' next='c'
                """)
        try nodes[0].foreignWrite("INSERT INTO knot VALUES ('c', 'b')")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                knot name='a' next='b'
                knot name='b' next='c'
                knot name='c' next='b'
                \(teams)
                """)
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
        try expectSame(
            all,
            are: """
                person team=->'red'
                team name='red' lead=->'red'
                pending missingTarget person team=->?
                pending unique team name='red' lead=->?
                """)
        try nodes[1].foreignWrite("UPDATE team SET name = 'blue'")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                person team=->'blue'
                person team=->'red'
                team name='blue' lead=->'blue'
                team name='red' lead=->'red'
                """)
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
        let expected = [
            """
            owner name='Ann'
            pet mine=->'Ann' yours=NULL
            pending missingTarget pet yours=->?
            """,
            """
            owner name='Ben'
            pet mine=NULL yours=->'Ben'
            pending missingTarget pet mine=->?
            """,
        ]
        for (index, state) in expected.enumerated() {
            let late = try lab.node("late\(index)")
            try late.receive([messages[2]])
            try expectState(late, is: "pending missingTarget pet mine=->? yours=->?")
            try late.receive([messages[index]])
            try expectState(late, is: state)
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
        try expectAll(
            nodes,
            are: """
                seat shop='t' number=1
                shop name='s'
                shop name='t'
                pending unique seat shop='s' number=1
                """)
        try nodes[0].write("DELETE FROM shop WHERE name = 's'")
        let all = try withLate(lab, nodes)
        try expectSame(
            all,
            are: """
                seat shop='t' number=1
                shop name='t'
                pending missingTarget seat shop='s' number=1
                """)
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
        try expectSame(
            nodes,
            are: """
                seat shop=NULL
                shop name='t'
                pending missingTarget seat shop='s'
                """)
        try nodes[1].write("UPDATE seat SET shop = 't'")
        try exchange(nodes)
        try expectSame(
            nodes,
            are: """
                seat shop='t'
                shop name='t'
                """)
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
        try expectSame(
            all,
            are: """
                t1 a=0
                t1 a=NULL
                t2 id=->NULL b='k3'
                pending missingTarget t2 id=->? b='k3'
                pending unique t1 a=0
                """)
    }

    @Test func p73AConflictingRowIsKnownByItsKeyOfRealNumbers() throws {
        let (lab, nodes) = try pair("CREATE TABLE t(k TEXT, l REAL, c TEXT UNIQUE, PRIMARY KEY (k, l))")
        try nodes[0].write("INSERT INTO t VALUES ('a', 4, 'x')")
        try nodes[1].write("INSERT INTO t VALUES ('b', 2.5, 'x')")
        let all = try withLate(lab, nodes)
        try expectSame(
            all,
            are: """
                t k='b' l=2.5 c='x'
                pending unique t k='a' l=4.0 c='x'
                """)
        try nodes[1].write("DELETE FROM t")
        try exchange(nodes)
        try expectSame(nodes, are: "t k='a' l=4.0 c='x'")
    }

    @Test func p73ARowWithoutAnIDAndWithAKeyOfRealNumbersGivesWay() throws {
        let (lab, nodes) = try pair("CREATE TABLE t(k REAL PRIMARY KEY, c TEXT UNIQUE)")
        try nodes[0].write("INSERT INTO t VALUES (1.5, 'x')")
        try nodes[1].write("INSERT INTO t VALUES (NULL, 'x')")
        let all = try withLate(lab, nodes)
        try expectBoth(all[0], all[2], are: "t k=1.5 c='x'")
        try expectState(
            nodes[1],
            is: """
                t k=1.5 c='x'
                pending unique t c='x'
                """)
        try expectSound(all)
    }
}
