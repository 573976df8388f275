import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that should agree but don't: something changed one of their files behind Martlet's back.
@Suite struct AntiEntropyTests {
    let lab: AntiEntropyLab

    init() throws { lab = try AntiEntropyLab() }

    /// Two nodes with the same rows, half of them written by each node.
    private func two() throws -> (CheckedNode, CheckedNode) {
        let a = try lab.node("a")
        let b = try lab.node("b")
        for (node, name) in [(a, "a"), (b, "b")] {
            for number in 1...5 {
                try node.node.write(
                    """
                    INSERT INTO trip(name, budget) VALUES ('\(name)\(number)', \(number).5);
                    INSERT INTO stop(trip, place) VALUES (last_insert_rowid(), '\(name)\(number)');
                    INSERT INTO setting VALUES ('\(name)\(number)', \(number));
                    """)
            }
        }
        try exchange([a.node, b.node])
        try b.node.write("UPDATE trip SET budget = 9 WHERE name = 'a2'; DELETE FROM setting WHERE key = 'a5'")
        try exchange([a.node, b.node])
        return (a, b)
    }

    /// The whole state of these nodes.
    private static let state = """
        setting key='a1' value=1
        setting key='a2' value=2
        setting key='a3' value=3
        setting key='a4' value=4
        setting key='b1' value=1
        setting key='b2' value=2
        setting key='b3' value=3
        setting key='b4' value=4
        setting key='b5' value=5
        stop trip=->'a1' place='a1'
        stop trip=->'a2' place='a2'
        stop trip=->'a3' place='a3'
        stop trip=->'a4' place='a4'
        stop trip=->'a5' place='a5'
        stop trip=->'b1' place='b1'
        stop trip=->'b2' place='b2'
        stop trip=->'b3' place='b3'
        stop trip=->'b4' place='b4'
        stop trip=->'b5' place='b5'
        trip name='a1' budget=1.5
        trip name='a2' budget=9.0
        trip name='a3' budget=3.5
        trip name='a4' budget=4.5
        trip name='a5' budget=5.5
        trip name='b1' budget=1.5
        trip name='b2' budget=2.5
        trip name='b3' budget=3.5
        trip name='b4' budget=4.5
        trip name='b5' budget=5.5
        """

    @Test func nodesThatAgreeNeedOneMessage() throws {
        let (a, b) = try two()
        try expectBoth(a.node, b.node, are: Self.state)
        try expectAgreement([a, b])
        #expect(try lab.messageCount == 2)
        #expect(try a.found() == [])
    }

    @Test func aValueChangedBehindMartletsBackIsRepaired() throws {
        let (a, b) = try two()
        try b.damage("UPDATE trip SET name = 'bad' WHERE name = 'a3'")
        try check([a, b])
        #expect(try b.found() == ["otherValue repaired trip.name"])
        try expectBoth(a.node, b.node, are: Self.state)
        #expect(try b.node.conflicts() == ["attribute|bad"])
        // The result is the same whichever node begins.
        try b.damage(
            "UPDATE setting SET value = 'bad' WHERE key = 'a1'; UPDATE stop SET place = 'bad' WHERE place = 'a3'")
        try check([b, a])
        #expect(
            try Set(b.found().dropFirst()) == ["otherValue repaired setting.value", "otherValue repaired stop.place"])
        try expectBoth(a.node, b.node, are: Self.state)
        try expectAgreement([a, b])
        #expect(try a.node.outboxCount() == 5 && b.node.outboxCount() == 6)
    }

    @Test func aDivergenceNamesItsColumnItsRowAndTheOtherNode() throws {
        let (a, b) = try two()
        try b.damage("UPDATE trip SET budget = 0 WHERE name = 'a1'")
        try check([a, b])
        let found = try #require(try b.node.store.divergences().first)
        #expect(found.entity == "trip" && found.column == "budget")
        #expect(found.node == a.node.engine.node && found.nodeName == "a")
        #expect(found.here == found.there)
        let name = try b.node.rows(
            "SELECT hex(ident) FROM \(b.side("trip")) WHERE row = (SELECT id FROM trip WHERE name = 'a1')")
        #expect(Hex.text(found.identity.bytes).uppercased() == name[0])
        #expect(try SyncStatus.read(b.node.store).divergenceCount == 1)
        #expect(try b.node.store.clearDivergences() == 1)
        #expect(try SyncStatus.read(b.node.store).divergenceCount == 0)
    }

    @Test func aLostRowComesBackUnderItsKey() throws {
        let (a, b) = try two()
        let before = try b.node.rows("SELECT * FROM trip ORDER BY id")
        try b.damage("DELETE FROM trip WHERE name = 'a3'; DELETE FROM setting WHERE key = 'b2'")
        try check([a, b])
        #expect(try Set(b.found()) == ["missingRow repaired trip", "missingRow repaired setting"])
        #expect(try a.found() == [])
        try expectBoth(a.node, b.node, are: Self.state)
        // The row has its former key, too.
        #expect(try b.node.rows("SELECT * FROM trip ORDER BY id") == before)
        try expectAgreement([a, b])
        try b.node.write("UPDATE trip SET name = 'later' WHERE name = 'a3'")
        try exchange([a.node, b.node])
        try expectAgreement([a, b])
    }

    /// Nobody can distinguish it from a row that a program without triggers deleted.
    @Test func aLostRowCountsAsDeletedIfTheAuditRunsFirst() throws {
        let (a, b) = try two()
        try b.damage("DELETE FROM setting WHERE key = 'a3'")
        #expect(try b.node.engine.audit().vanished == ["setting": 1])
        try check([a, b])
        #expect(try b.found() == [] && a.found() == [])
        try exchange([a.node, b.node])
        try talk([a, b])
        try expectBoth(a.node, b.node, are: Self.state.replacing("setting key='a3' value=3\n", with: ""))
        try expectAgreement([a, b])
    }

    @Test func aLostTombstoneIsRepaired() throws {
        let (a, b) = try two()
        try a.node.loseTombstones()
        try check([b, a])
        #expect(try a.found() == ["missingDelete repaired setting"])
        #expect(try a.node.tombstones().count == 1)
        try expectAgreement([a, b])
    }

    @Test func aDeletedRowThatCameBackIsDeletedAgain() throws {
        let (a, b) = try two()
        try b.node.loseTombstones()
        try b.damage("INSERT INTO setting VALUES ('a5', 5)")
        try check([a, b])
        #expect(try b.found() == ["missingDelete repaired setting"])
        try expectAgreement([a, b])
        try expectBoth(a.node, b.node, are: Self.state)
    }

    @Test func aClockThatWasSetBackIsRepaired() throws {
        let (a, b) = try two()
        try b.damage("UPDATE \(b.side("trip")) SET hlc = hlc - 65536, attrs = NULL WHERE row = 2")
        try check([a, b])
        #expect(try b.found() == ["missingRow repaired trip"])
        try expectAgreement([a, b])
    }

    /// The value with that clock wins, because nobody can distinguish it from one written at that time. The node that
    /// is overruled records the conflict.
    @Test func aClockThatWasSetForwardIsReported() throws {
        let (a, b) = try two()
        try b.damage(
            """
            UPDATE \(b.side("trip")) SET hlc = hlc + 65536 WHERE row = (SELECT id FROM trip WHERE name = 'a3');
            UPDATE trip SET name = 'bad' WHERE name = 'a3';
            """)
        try check([a, b])
        #expect(try a.found() == ["missingRow repaired trip"])
        #expect(try a.node.rows("SELECT count(*) FROM trip WHERE name = 'bad'") == ["1"])
        #expect(try a.node.conflicts().contains("attribute|a3"))
        // The same holds for a row that the other node wrote.
        try b.damage(
            """
            UPDATE \(b.side("trip")) SET hlc = hlc + 65536 WHERE row = (SELECT id FROM trip WHERE name = 'b3');
            UPDATE trip SET name = 'worse' WHERE name = 'b3';
            """)
        try check([a, b])
        #expect(try a.node.conflicts().contains("attribute|b3"))
        try expectAgreement([a, b])
    }

    @Test func aNodeThatIsBehindWaitsAndFindsNothing() throws {
        let (a, b) = try two()
        try a.node.write("UPDATE trip SET name = 'new' WHERE name = 'a1'; INSERT INTO trip(name) VALUES ('newer')")
        try a.node.publish()
        #expect(try a.antiEntropy.begin())
        try talk([a, b])
        #expect(b.progress == AntiEntropyProgress())
        try exchange([a.node, b.node])
        try talk([a, b])
        #expect(b.progress.agreed == 1 && b.progress.found == 0 && b.progress.sent == 0)
        try expectAgreement([a, b])
    }

    @Test func anUnpublishedChangeIsNoDivergence() throws {
        let (a, b) = try two()
        // Unpublished on the node that begins...
        try a.node.write("UPDATE trip SET name = 'unsent' WHERE name = 'a1'")
        #expect(try a.antiEntropy.begin() == false)
        // ... and on the node that answers.
        try b.node.write("UPDATE trip SET name = 'mine' WHERE name = 'b1'; DELETE FROM setting WHERE key = 'b2'")
        try a.node.publish()
        try a.node.consume()
        #expect(try a.antiEntropy.begin())
        try b.node.consume()
        try talk([a, b])
        #expect(try a.found() == [] && b.found() == [])
        // The other node's answer waits for the transactions that it is based on.
        try exchange([a.node, b.node])
        try talk([a, b])
        #expect(try a.found() == [] && b.found() == [])
        try expectAgreement([a, b])
    }

    @Test func aChangeWithAFutureClockIsNotCompared() throws {
        let slow = TestClock()
        let a = try lab.node("a", clock: slow)
        let b = try lab.node("b")
        try a.node.write("INSERT INTO setting VALUES ('k', 1); INSERT INTO trip(name) VALUES ('t')")
        try exchange([a.node, b.node])
        slow.milliseconds = SQLiteClock.milliseconds - 3_600_000
        try b.node.write("UPDATE setting SET value = 2")
        try b.node.publish()
        try a.node.consume()
        try check([b, a])
        #expect(try a.found() == [] && b.found() == [])
        try expectState(
            a.node,
            is: """
                setting key='k' value=1
                trip name='t' budget=NULL
                pending futureClock
                """)
        // The time of the change has come, but no node has retried it yet.
        slow.milliseconds = SQLiteClock.milliseconds
        for nodes in [[a, b], [b, a]] { try check(nodes) }
        #expect(try a.found() == [] && b.found() == [])
        #expect(a.progress.ignored == 0 && b.progress.ignored == 0)
        try a.node.consume()
        try expectBoth(
            a.node, b.node,
            are: """
                setting key='k' value=2
                trip name='t' budget=NULL
                """)
        try expectAgreement([a, b])
    }

    @Test func tablesWithDifferentColumnsAreNotCompared() throws {
        let (a, b) = try two()
        let other = try lab.node("other")
        try exchange([a.node, b.node, other.node])
        try b.node.store.alter(sql: "ALTER TABLE trip ADD COLUMN color TEXT DEFAULT 'red'")
        try b.node.write("UPDATE trip SET color = 'blue' WHERE name = 'a1'")
        // No node sends rows that the other node can't apply.
        try check([a, b, other])
        #expect(try lab.messageCount == 1)
        #expect(b.progress.agreed == 1 && other.progress.agreed == 1)
        try other.damage("UPDATE trip SET name = 'bad' WHERE name = 'a1'")
        try check([a, b, other])
        #expect(try other.found() == ["otherValue repaired trip.name"])
        #expect(b.progress.sent == 0)
        try exchange([a.node, b.node, other.node])
        try b.damage(
            "UPDATE trip SET name = 'bad' WHERE name = 'a1'; UPDATE setting SET value = 'bad' WHERE key = 'a1'")
        try check([a, b])
        #expect(try b.found() == ["otherValue repaired setting.value"])
        try a.node.store.alter(sql: "ALTER TABLE trip ADD COLUMN color TEXT DEFAULT 'red'")
        try check([a, b])
        #expect(try b.found().last == "otherValue repaired trip.name")
        try expectAgreement([a, b])
    }

    @Test func rowsFromBeforeTheAttachThatWereNeverPublishedStayOnTheirNode() throws {
        let (a, b) = try two()
        try a.damage("CREATE TABLE old(id INTEGER PRIMARY KEY, t TEXT); INSERT INTO old VALUES (1, 'x'), (2, 'y')")
        try b.damage("CREATE TABLE old(id INTEGER PRIMARY KEY, t TEXT)")
        for node in [a, b] { _ = try node.node.store.attach() }
        try a.node.write("UPDATE old SET t = 'z' WHERE id = 2")
        try exchange([a.node, b.node])
        for nodes in [[a, b], [b, a]] { try check(nodes) }
        #expect(try a.found() == [] && b.found() == [])
        #expect(try b.node.rows("SELECT count(*) FROM old") == ["0"])
        #expect(a.progress.agreed == 1 && b.progress.agreed == 1)
    }
}
