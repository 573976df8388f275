import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// A clock that was ahead for a while excludes no node.
@Suite struct FutureStampTests {
    private static let schema = """
        CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value, other);
        CREATE TABLE trip(id INTEGER PRIMARY KEY, name TEXT, budget REAL);
        """
    private static let day: Int64 = 86_400_000

    private func rows(_ node: TestNode) throws -> [String] {
        try node.rows("SELECT key, value, other FROM setting ORDER BY key")
            + node.rows("SELECT name, budget FROM trip ORDER BY name")
    }

    private func expectAgree(_ nodes: [TestNode], sourceLocation: SourceLocation = #_sourceLocation) throws {
        let first = try #require(nodes.first)
        for node in nodes {
            #expect(try rows(node) == rows(first), "on \(node.name)", sourceLocation: sourceLocation)
            #expect(
                try StoreDigest.compute(node.store) == StoreDigest.compute(first.store), "on \(node.name)",
                sourceLocation: sourceLocation)
            #expect(try node.pendingMessages() == [], sourceLocation: sourceLocation)
        }
    }

    @Test func p44AWriteUnderAWrongClockDoesNotHoldUpLaterWrites() throws {
        let lab = try Lab(Self.schema)
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.foreignWrite("INSERT INTO setting VALUES ('x', 1, 1)", ahead: .milliseconds(400 * Self.day))
        try exchange([a, b])
        try a.write("UPDATE setting SET value = 2")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='x' value=2 other=1")
        // Their times are no later than the allowed skew, and in the order of the writes.
        let limit = SQLiteClock.milliseconds + a.engine.session.maxClockSkew
        #expect(try a.hybridTime().milliseconds <= limit)
        try expectAgree([a, b])
    }

    /// A node whose agent itself ran under the wrong clock, and another node that has received its changes.
    private func poisoned(_ lab: Lab, _ clock: TestClock) throws -> (a: TestNode, b: TestNode) {
        let (a, b) = (try lab.node("a", clock: clock), try lab.node("b"))
        try a.write(
            """
            INSERT INTO setting VALUES ('old', 1, 1), ('gone', 1, 1), ('kept', 1, 1);
            INSERT INTO trip VALUES (1, 'alps', 5)
            """
        )
        try exchange([a, b])
        clock.milliseconds = SQLiteClock.milliseconds + 400 * Self.day
        try a.foreignWrite("INSERT INTO setting VALUES ('x', 1, 1)", ahead: .milliseconds(400 * Self.day))
        try exchange([a, b])
        // The clock is right again, but new writes still get timestamps in the future.
        clock.milliseconds = SQLiteClock.milliseconds
        try a.write("UPDATE setting SET value = 2 WHERE key = 'old'; INSERT INTO trip VALUES (2, 'sea', 1)")
        try a.write("DELETE FROM setting WHERE key = 'gone'; UPDATE trip SET name = 'Alps' WHERE id = 1")
        try exchange([a, b])
        try expectState(
            a,
            is: """
                setting key='kept' value=1 other=1
                setting key='old' value=2 other=1
                setting key='x' value=1 other=1
                trip name='Alps' budget=5.0
                trip name='sea' budget=1.0
                """)
        try expectState(
            b,
            is: """
                setting key='gone' value=1 other=1
                setting key='kept' value=1 other=1
                setting key='old' value=1 other=1
                trip name='alps' budget=5.0
                pending futureClock
                pending futureClock
                pending futureClock
                """)
        return (a, b)
    }

    @Test(arguments: [1, 3]) func p44RestampingLetsOthersApplyThePendingChanges(partitions: Int) throws {
        let lab = try Lab(Self.schema, partitions: partitions)
        let clock = TestClock()
        let (a, b) = try poisoned(lab, clock)
        let stamps = try #require(try FutureStamps.read(a.store, after: SQLiteClock.milliseconds + 300_000))
        #expect(stamps.rows == 5)
        // Another node's edit of another column, and an edit that the node with the wrong clock doesn't know.
        try b.write("UPDATE setting SET other = 7 WHERE key = 'old'; INSERT INTO setting VALUES ('of b', 1, 1)")
        let report = try a.engine.restamp()
        #expect(report.rows == 5)
        #expect(report.replaced == 3)
        #expect(report.published == 1)
        #expect(try FutureStamps.read(a.store, after: SQLiteClock.milliseconds + 300_000) == nil)
        #expect(try a.engine.restamp() == RestampReport())
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                setting key='kept' value=1 other=1
                setting key='of b' value=1 other=1
                setting key='old' value=2 other=7
                setting key='x' value=1 other=1
                trip name='Alps' budget=5.0
                trip name='sea' budget=1.0
                """)
        try expectAgree([a, b])
        // Sync continues.
        try a.write("UPDATE setting SET value = 3 WHERE key = 'x'; INSERT INTO setting VALUES ('gone', 9, 9)")
        try b.write("UPDATE trip SET budget = 6 WHERE name = 'Alps'")
        try exchange([a, b])
        // A late joiner reads the topic from the beginning.
        let late = try lab.node("late")
        try exchange([a, b, late])
        try expectAll(
            [a, b, late],
            are: """
                setting key='gone' value=9 other=9
                setting key='kept' value=1 other=1
                setting key='of b' value=1 other=1
                setting key='old' value=2 other=7
                setting key='x' value=3 other=1
                trip name='Alps' budget=6.0
                trip name='sea' budget=1.0
                """)
        try expectAgree([a, b, late])
    }

    /// The agent stops and starts in between, and other programs write.
    @Test func p44ARestampedStoreSyncsNormally() throws {
        let lab = try Lab(Self.schema)
        let clock = TestClock()
        let (a, b) = try poisoned(lab, clock)
        try a.foreignWrite(
            """
            INSERT INTO setting VALUES ('unseen', 1, 1);
            ALTER TABLE setting ADD COLUMN more;
            UPDATE setting SET more = 5 WHERE key = 'x'
            """
        )
        try b.foreignWrite("ALTER TABLE setting ADD COLUMN more")
        try a.engine.restamp()
        try a.restart()
        try a.foreignWrite(
            "UPDATE setting SET other = 3 WHERE key = 'unseen'; INSERT INTO setting VALUES ('last', 1, 1, 1)")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                setting key='kept' value=1 other=1 more=NULL
                setting key='last' value=1 other=1 more=1
                setting key='old' value=2 other=1 more=NULL
                setting key='unseen' value=1 other=3 more=NULL
                setting key='x' value=1 other=1 more=5
                trip name='Alps' budget=5.0
                trip name='sea' budget=1.0
                """)
        try expectAgree([a, b])
    }

    /// The outbox stores the message of a transaction that took several commits to enqueue in parts.
    @Test func p44ATransactionThatWasEnqueuedInSlicesIsRestampedToo() throws {
        let lab = try Lab(Self.schema)
        let clock = TestClock()
        let a = try lab.node("a", clock: clock) { $0.enqueueLimits.changes = 3 }
        let b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('old', 1, 1)")
        try exchange([a, b])
        clock.milliseconds = SQLiteClock.milliseconds + 400 * Self.day
        try a.foreignWrite(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
            INSERT INTO setting SELECT 'k' || i, i, i FROM n
            """, ahead: .milliseconds(400 * Self.day))
        try exchange([a, b])
        #expect(try a.outboxParts().count == 1)
        #expect(try b.pendingMessages().count == 1)
        clock.milliseconds = SQLiteClock.milliseconds
        let report = try a.engine.restamp()
        #expect(report.rows == 20)
        #expect(report.replaced == 1)
        try exchange([a, b])
        let new = (1...20).map { "setting key='k\($0)' value=\($0) other=\($0)" }
        try expectBoth(a, b, are: (["setting key='old' value=1 other=1"] + new).sorted().joined(separator: "\n"))
        try expectAgree([a, b])
    }

    /// A node that applied the changes under a clock that was also ahead repairs itself, too.
    @Test func p44ANodeThatAppliedTheChangesIsRestampedToo() throws {
        let lab = try Lab(Self.schema)
        let clock = TestClock()
        let a = try lab.node("a", clock: clock)
        let b = try lab.node("b", clock: clock)
        try a.write("INSERT INTO setting VALUES ('x', 1, 1)")
        try exchange([a, b])
        clock.milliseconds = SQLiteClock.milliseconds + 400 * Self.day
        try a.foreignWrite("UPDATE setting SET value = 2", ahead: .milliseconds(400 * Self.day))
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='x' value=2 other=1")
        clock.milliseconds = SQLiteClock.milliseconds
        try a.engine.restamp()
        try b.engine.restamp()
        try exchange([a, b])
        try b.write("UPDATE setting SET value = 3")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='x' value=3 other=1")
        try expectAgree([a, b])
        #expect(try FutureStamps.read(b.store, after: SQLiteClock.milliseconds + 300_000) == nil)
    }

    /// Clocks of such rows are stored by the key, which is not sent as a local key.
    @Test func p44RowsWhoseIntegerKeyIsTheirIdentityAreRestampedToo() throws {
        var request = AttachRequest()
        request.identities = ["badge": ["id"]]
        let lab = try Lab(
            """
            CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE profile(id INTEGER PRIMARY KEY REFERENCES person(id), bio TEXT);
            CREATE TABLE badge(id INTEGER PRIMARY KEY, owner TEXT);
            """, request: request)
        let clock = TestClock()
        let (a, b) = (try lab.node("a", clock: clock), try lab.node("b"))
        try a.write("INSERT INTO badge VALUES (3, 'ann')")
        try exchange([a, b])
        clock.milliseconds = SQLiteClock.milliseconds + 400 * Self.day
        try a.foreignWrite(
            """
            INSERT INTO person VALUES (5, 'ann');
            INSERT INTO profile VALUES (5, 'of ann');
            INSERT INTO badge VALUES (7, 'ben');
            UPDATE badge SET owner = 'cy' WHERE id = 3
            """, ahead: .milliseconds(400 * Self.day))
        try exchange([a, b])
        #expect(try b.pendingMessages().count == 1)
        clock.milliseconds = SQLiteClock.milliseconds
        #expect(try a.engine.restamp().rows == 4)
        #expect(try FutureStamps.read(a.store, after: SQLiteClock.milliseconds + 300_000) == nil)
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                badge id=3 owner='cy'
                badge id=7 owner='ben'
                person name='ann'
                profile id=->'ann' bio='of ann'
                """)
        try b.write("UPDATE badge SET owner = 'dan' WHERE id = 7; UPDATE profile SET bio = 'new'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                badge id=3 owner='cy'
                badge id=7 owner='dan'
                person name='ann'
                profile id=->'ann' bio='new'
                """)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(b.store))
    }

    /// The replacement of the pending changes is published under the new ID, which can't replace them. They are applied
    /// when their time has come, on all nodes.
    @Test func p197AStoreThatIsForkedAfterRestampingAgreesWithOthersOnceTheTimeHasCome() throws {
        let lab = try Lab(Self.schema)
        let clock = TestClock()
        let (a, b) = try poisoned(lab, clock)
        try a.engine.restamp()
        try a.engine.fork()
        try a.restart()
        try exchange([a, b])
        #expect(try rows(b) == ["kept|1|1", "old|2|1", "x|1|1", "Alps|5.0", "sea|1.0"])
        #expect(try rows(a) == rows(b))
        try a.write("UPDATE setting SET value = 3 WHERE key = 'x'")
        try exchange([a, b])
        for node in [a, b] { #expect(try node.pendingMessages().count == 3) }
        for node in [a, b] {
            node.clock.milliseconds = SQLiteClock.milliseconds + 401 * Self.day
            try node.engine.releaseDeferred()
        }
        try exchange([a, b])
        try expectAgree([a, b])
    }

    /// The changes are restamped under the new ID, which can't replace what was sent under the former one. Others apply
    /// that when its time has come, so the fork has to do the same.
    @Test func p197AStoreThatIsForkedBeforeRestampingAgreesWithOthersOnceTheTimeHasCome() throws {
        let lab = try Lab(Self.schema)
        let (a, b) = try poisoned(lab, TestClock())
        try a.engine.fork()
        try a.restart()
        try a.write("UPDATE setting SET value = 3 WHERE key = 'x'; UPDATE trip SET budget = 6 WHERE name = 'Alps'")
        #expect(try a.engine.restamp().replaced == 1)
        try exchange([a, b])
        // What was sent under the former ID still waits, on both.
        try expectBoth(
            a, b,
            are: """
                setting key='kept' value=1 other=1
                setting key='old' value=2 other=1
                setting key='x' value=3 other=1
                trip name='Alps' budget=6.0
                trip name='sea' budget=1.0
                pending futureClock
                pending futureClock
                pending futureClock
                """)
        for node in [a, b] {
            node.clock.milliseconds = SQLiteClock.milliseconds + 401 * Self.day
            try node.engine.releaseDeferred()
        }
        try exchange([a, b])
        // The value of the insert is stamped later than the update that was restamped.
        try expectBoth(
            a, b,
            are: """
                setting key='kept' value=1 other=1
                setting key='old' value=2 other=1
                setting key='x' value=1 other=1
                trip name='Alps' budget=6.0
                trip name='sea' budget=1.0
                """)
        try expectAgree([a, b])
    }

    /// A transaction that was replaced on the topic before the fork is no longer pending anywhere.
    @Test func aStoreThatIsForkedAfterTheReplacementWasReadKeepsNothingPending() throws {
        let lab = try Lab(Self.schema)
        let (a, b) = try poisoned(lab, TestClock())
        try a.engine.restamp()
        try exchange([a, b])
        try a.engine.fork()
        try a.restart()
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                setting key='kept' value=1 other=1
                setting key='old' value=2 other=1
                setting key='x' value=1 other=1
                trip name='Alps' budget=5.0
                trip name='sea' budget=1.0
                """)
        try expectAgree([a, b])
    }

    /// What the delete replaced is not known after restamping. The newest value is of the delete's author, and an older
    /// one of another column is not.
    @Test func p127ARestampedDeleteJournalsValuesThatItsAuthorHadNotSeen() throws {
        let lab = try Lab(Self.schema)
        let clock = TestClock()
        let (a, b) = (try lab.node("a", clock: clock), try lab.node("b"))
        try a.write("INSERT INTO setting VALUES ('x', 1, 1)")
        try exchange([a, b])
        try b.write("UPDATE setting SET value = 5")
        _ = try b.engine.apply([], topic: "t")
        // Later than the other node's update, even in the same millisecond.
        for value in 7...9 { try a.write("UPDATE setting SET other = \(value)") }
        try a.publish()
        clock.milliseconds = SQLiteClock.milliseconds + 400 * Self.day
        try a.foreignWrite("DELETE FROM setting", ahead: .milliseconds(400 * Self.day))
        try a.publish()
        clock.milliseconds = SQLiteClock.milliseconds
        #expect(try a.engine.restamp().rows == 1)
        try a.publish()
        try b.consume()
        try expectState(b, is: WholeState.nothing)
        #expect(try b.conflicts() == ["deleted|5"])
        try exchange([a, b])
        try expectBoth(a, b, are: WholeState.nothing)
        #expect(try a.conflicts() == ["deleted|5"])
        try expectAgree([a, b])
    }

    /// A pending row and a tombstone stay on their node, but lose their future timestamps.
    @Test func p44PendingAndDeletedRowsAreRestampedToo() throws {
        let lab = try Lab("CREATE TABLE badge(id INTEGER PRIMARY KEY, code TEXT UNIQUE, owner TEXT);")
        let clock = TestClock()
        let (a, b) = (try lab.node("a", clock: clock), try lab.node("b", clock: clock))
        clock.milliseconds = SQLiteClock.milliseconds + 400 * Self.day
        try a.foreignWrite("INSERT INTO badge VALUES (1, 'B7', 'ann')", ahead: .milliseconds(400 * Self.day))
        try b.foreignWrite("INSERT INTO badge VALUES (1, 'B7', 'ben')", ahead: .milliseconds(400 * Self.day + 1000))
        try exchange([a, b])
        let expected = """
            badge code='B7' owner='ben'
            pending unique badge code='B7' owner='ann'
            """
        try expectBoth(a, b, are: expected)
        try a.write("INSERT INTO badge VALUES (9, 'C1', 'cy')")
        try exchange([a, b])
        try a.write("DELETE FROM badge WHERE code = 'C1'")
        try exchange([a, b])
        clock.milliseconds = SQLiteClock.milliseconds
        #expect(try a.engine.restamp().rows == 3)
        clock.milliseconds += 1
        #expect(try b.engine.restamp().rows == 3)
        try exchange([a, b])
        let limit = HybridTime(milliseconds: SQLiteClock.milliseconds + 300_000)
        for node in [a, b] {
            #expect(try node.tombstones().map { $0.stamp.time <= limit } == [true])
        }
        try expectBoth(a, b, are: expected)
        try a.write("DELETE FROM badge")
        try exchange([a, b])
        try expectBoth(a, b, are: "badge code='B7' owner='ann'")
    }
}

/// Integer keys of other nodes' rows leave room for those that programs need.
@Suite struct RowNumberTests {
    @Test(arguments: ["INTEGER PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT"])
    func p47ANumberAtTheEndOfTheRangeIsNotTakenOver(key: String) throws {
        let lab = try Lab("CREATE TABLE item(id \(key), name TEXT, part INTEGER REFERENCES item(id))")
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.write("INSERT INTO item(name) VALUES ('first')")
        try a.write("INSERT INTO item(id, name) VALUES (9223372036854775807, 'last'), (4611686018427387905, 'high')")
        try exchange([a, b])
        try b.foreignWrite("INSERT INTO item(name) VALUES ('of b')")
        #expect(try b.rows("SELECT id, name FROM item ORDER BY id") == ["1|first", "2|last", "3|high", "4|of b"])
        // Even if no number is left for programs, rows of others must arrive.
        try a.write("INSERT INTO item(id, name) VALUES (5, 'five')")
        try b.write("INSERT INTO item(name) VALUES ('more'), ('most')")
        try b.write("UPDATE item SET part = (SELECT id FROM item WHERE name = 'of b') WHERE name = 'most'")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item name='first' part=NULL
                item name='five' part=NULL
                item name='high' part=NULL
                item name='last' part=NULL
                item name='more' part=NULL
                item name='most' part=->'of b'
                item name='of b' part=NULL
                """)
        #expect(try a.rows("SELECT id FROM item WHERE name IN ('more', 'most') ORDER BY id") == ["6", "7"])
        try a.write("DELETE FROM item WHERE name IN ('last', 'high')")
        try b.write("DELETE FROM item WHERE name = 'first'; INSERT INTO item(name) VALUES ('again')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                item name='again' part=NULL
                item name='five' part=NULL
                item name='more' part=NULL
                item name='most' part=->'of b'
                item name='of b' part=NULL
                """)
        // A late joiner.
        let late = try lab.node("late")
        try exchange([a, b, late])
        try late.foreignWrite("INSERT INTO item(name) VALUES ('late')")
        #expect(try late.rows("SELECT max(id) < 100 FROM item") == ["1"])
    }
}
