import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Pending changes are retried when a person asks for it, and only a person discards them.
@Suite struct ParkedTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab(partitions: 2)
        a = try lab.node("a")
        b = try lab.node("b")
    }

    /// A trip from one node, and a stop and notes that refer to it from another.
    private func parentAndChildren(notes: Int = 1) throws -> (parent: [IncomingMessage], children: [IncomingMessage]) {
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try a.publish()
        let parent = try lab.messages()
        try b.consume()
        try b.write("INSERT INTO stop(trip, place) VALUES (1, 'p')")
        for index in 0..<notes { try b.write("INSERT INTO note(trip, text) VALUES (1, 'n\(index)')") }
        try b.publish()
        return (parent, try lab.messages().filter { !parent.map(\.key).contains($0.key) })
    }

    /// Hides the pending changes from the node during `body`, as if it had missed them.
    private func unaware(_ node: TestNode, _ body: () throws -> Void) throws {
        let tables = ["shadows", "shadow_columns", "pending"]
        for table in tables {
            try node.write(
                "CREATE TABLE kept_\(table) AS SELECT * FROM _martlet_\(table); DELETE FROM _martlet_\(table)")
        }
        try node.restart()
        try body()
        for table in tables {
            try node.write("INSERT INTO _martlet_\(table) SELECT * FROM kept_\(table); DROP TABLE kept_\(table)")
        }
        try node.restart()
    }

    private func expectRefused(_ node: TestNode, _ id: String) throws {
        let before = try node.store.parked(includingDeleted: true)
        let error = #expect(throws: StoreError.self) { try node.store.discardParked(id) }
        #expect(error?.code == .invalidArgument)
        #expect(try node.store.parked(includingDeleted: true) == before)
    }

    // MARK: Retries

    @Test func aRetryAppliesRowsAndReferencesWhoseTargetExists() throws {
        let (parent, children) = try parentAndChildren(notes: 2)
        let c = try lab.node("c")
        try c.receive(children)
        try unaware(c) { try c.receive(parent) }
        try expectState(
            c,
            is: """
                note trip=NULL text='n0'
                note trip=NULL text='n1'
                trip name='x' budget=NULL
                pending missingTarget note trip=->'x'
                pending missingTarget note trip=->'x'
                pending missingTarget stop trip=->'x' place='p'
                """)
        let report = try c.engine.retryParked()
        #expect(report.before == 3 && report.after == 0)
        let expected = """
            note trip=->'x' text='n0'
            note trip=->'x' text='n1'
            stop trip=->'x' place='p'
            trip name='x' budget=NULL
            """
        try expectState(c, is: expected)
        #expect(try c.rows("PRAGMA foreign_key_check") == [])
        try exchange([a, b, c])
        try expectAll([a, b, c], are: expected)
        #expect(try StoreDigest.compute(a.store) == StoreDigest.compute(c.store))
        // Other nodes published what a retry applies, once.
        #expect(try c.outboxCount() == 0)
    }

    @Test func aRetryAppliesChangesOfARowThatExists() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try a.publish()
        try a.write("UPDATE trip SET budget = 5")
        try a.publish()
        let messages = try lab.messages()
        try b.receive([messages[1]])
        try expectState(b, is: "pending missingRow trip budget=5.0")
        try unaware(b) { try b.receive([messages[0]]) }
        try expectState(
            b,
            is: """
                trip name='x' budget=NULL
                pending missingRow trip budget=5.0
                """)
        #expect(try b.engine.retryParked().after == 0)
        try expectBoth(a, b, are: "trip name='x' budget=5.0")
    }

    @Test func aRetryAppliesARowWhoseUniqueKeyIsFreeAgain() throws {
        let lab = try Lab("CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
        let a = try lab.node("a")
        let b = try lab.node("b")
        try a.write("INSERT INTO tag VALUES (1, 'old')")
        try b.write("INSERT INTO tag VALUES (2, 'old')")
        try exchange([a, b])
        try expectBoth(
            a, b,
            are: """
                tag name='old'
                pending unique tag name='old'
                """)
        let stays = try b.engine.retryParked()
        #expect(stays.before == 1 && stays.after == 1)
        try unaware(b) { try b.write("DELETE FROM tag") }
        try expectState(b, is: "pending unique tag name='old'")
        #expect(try b.engine.retryParked().after == 0)
        try expectState(b, is: "tag name='old'")
        #expect(try b.store.conflicts().count == 1)
    }

    @Test func aChangeThatIsStillPendingKeepsItsNumberAndAge() throws {
        let (_, children) = try parentAndChildren()
        let strict = Lab.trips.replacing("value)", with: "value CHECK (value < 100))")
        let c = try lab.node("c", schema: strict)
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.write("UPDATE setting SET value = 1000")
        try a.write("CREATE TABLE later(key TEXT PRIMARY KEY NOT NULL)")
        _ = try a.store.attach()
        try a.write("INSERT INTO later VALUES ('l')")
        try a.publish()
        try c.receive(try lab.messages().filter { message in children.first?.key != message.key }.suffix(3))
        try c.receive(children)
        try c.write(
            """
            UPDATE _martlet_shadows SET since = id * 1000; UPDATE _martlet_pending SET since = 1;
            UPDATE _martlet_deferred SET id = 77, since = 2;
            """)
        let before = try c.store.parked()
        let expected = """
            note trip=NULL text='n0'
            setting key='k' value=1
            pending constraint setting key='k' value=1000
            pending missingTarget note trip=->?
            pending missingTarget stop trip=->? place='p'
            pending unknownSchema
            """
        try expectState(c, is: expected)
        #expect(before.map(\.reason) == [.constraint, .missingTarget, .missingTarget, .unknownSchema])
        let report = try c.engine.retryParked()
        #expect(report.before == 4 && report.after == 4)
        #expect(try c.store.parked() == before)
        try c.restart()
        c.publisher.step()
        try c.receive([])
        #expect(try c.store.parked() == before)
        try expectState(c, is: expected)
    }

    @Test func aChangeFromTheFutureStaysPendingUntilItIsDue() throws {
        let clock = TestClock(SQLiteClock.milliseconds - 3_600_000)
        let c = try lab.node("c", clock: clock)
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        try c.receive(try lab.messages())
        try c.write("UPDATE _martlet_deferred SET id = 77, since = 2")
        let before = try c.store.parked()
        #expect(try c.engine.retryParked().after == 1)
        #expect(try c.store.parked() == before)
        try expectState(c, is: "pending futureClock")
        clock.milliseconds += 3_600_000
        #expect(try c.engine.retryParked().after == 0)
        try expectBoth(a, c, are: "setting key='k' value=1")
    }

    @Test func referencesToADroppedTableHoldNothingUp() throws {
        let (_, children) = try parentAndChildren()
        let c = try lab.node("c")
        try c.receive(children)
        try c.foreignWrite("DROP TABLE trip")
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        #expect(try c.engine.retryParked().after == 2)
        try c.receive(try lab.messages().filter { message in children.first?.key != message.key })
        try expectState(
            c,
            is: """
                note trip=NULL text='n0'
                setting key='k' value=1
                pending missingTarget note trip=->?
                pending missingTarget stop trip=->? place='p'
                pending unknownSchema
                """)
    }

    // MARK: Discarding

    @Test func aPendingReferenceKeepsItsIDWhateverElseIsPending() throws {
        let (_, children) = try parentAndChildren(notes: 3)
        let c = try lab.node("c")
        try c.receive(children)
        let references = try c.store.parked().filter { $0.id.hasPrefix("p") }
        #expect(Set(references.map(\.id)).count == 3)
        for (index, item) in references.enumerated() {
            #expect(try c.store.discardParked(item.id) == item)
            #expect(try c.store.parked().filter { $0.id.hasPrefix("p") } == Array(references[(index + 1)...]))
            try expectRefused(c, item.id)
        }
    }

    @Test func aDiscardedRowDoesNotComeBackWithItsTarget() throws {
        let (parent, children) = try parentAndChildren()
        let c = try lab.node("c")
        try c.receive(children)
        // The engine has counted the pending changes, and keeps running.
        for item in try c.store.parked() { try c.store.discardParked(item.id) }
        #expect(try c.rows("SELECT count(*) FROM _martlet_shadow_columns") == ["0"])
        try c.receive(parent)
        try expectState(
            c,
            is: """
                note trip=NULL text='n0'
                trip name='x' budget=NULL
                """)
        #expect(try SyncStatus.read(c.store).parkedCount == 0)
        try b.write("UPDATE note SET trip = NULL; UPDATE note SET trip = 1, text = 'again'")
        try b.write("DELETE FROM stop; INSERT INTO stop(trip, place) VALUES (1, 'q')")
        try exchange([a, b, c])
        try expectAll(
            [a, b, c],
            are: """
                note trip=->'x' text='again'
                stop trip=->'x' place='q'
                trip name='x' budget=NULL
                """)
        #expect(try StoreDigest.compute(b.store) == StoreDigest.compute(c.store))
    }

    @Test func anUpdateOfADeletedRowCanBeDiscarded() throws {
        try a.write("INSERT INTO trip(name) VALUES ('x')")
        try exchange([a, b])
        try a.write("DELETE FROM trip")
        try b.write("UPDATE trip SET name = 'y'")
        try exchange([a, b])
        try expectBoth(a, b, are: "nothing")
        let item = try #require(try a.store.parked(includingDeleted: true).first)
        #expect(try a.store.discardParked(item.id).reason == .deleted)
        #expect(try a.store.parked(includingDeleted: true) == [])
    }

    @Test func aDiscardedTransactionIsNotRetried() throws {
        try a.write("CREATE TABLE later(key TEXT PRIMARY KEY NOT NULL)")
        _ = try a.store.attach()
        try a.write("INSERT INTO later VALUES ('l')")
        try exchange([a, b])
        let item = try #require(try b.store.parked().first)
        try expectState(a, is: "later key='l'")
        try expectState(b, is: "pending unknownSchema")
        #expect(try b.store.discardParked(item.id) == item)
        try b.write("CREATE TABLE later(key TEXT PRIMARY KEY NOT NULL)")
        _ = try b.store.attach()
        try exchange([a, b])
        try expectState(b, is: "nothing")
    }

    @Test(arguments: ["", "r", "r99", "t99", "p", "p99", "p000000000000", "x1", "1", "r1 OR 1", "R1"])
    func anUnknownIDIsRefused(id: String) throws {
        let (_, children) = try parentAndChildren()
        let c = try lab.node("c")
        try expectRefused(c, id)
        try c.receive(children)
        #expect(try c.store.parked().count == 2)
        try expectRefused(c, id)
    }

    @Test func aStoreThatNeverSyncedHasNothingToDiscard() throws {
        let store = try TemporaryStore("CREATE TABLE note(id INTEGER PRIMARY KEY)")
        #expect(throws: StoreError.self) { try store.store.discardParked("r1") }
        #expect(try store.store.discardQuarantined(1) == nil)
    }
}
