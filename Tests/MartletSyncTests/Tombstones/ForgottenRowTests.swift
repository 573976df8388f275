import Foundation
import MartletStore
import MartletTestSupport
import Testing

@testable import MartletSync

/// What a node that has forgotten deleted rows takes from others, and what it keeps.
@Suite struct ForgottenRowTests {
    let lab: TombstoneLab

    init() throws { lab = try TombstoneLab() }

    /// A node that forgets nothing.
    private func rememberer(_ name: String) throws -> CheckedNode {
        try lab.checked(lab.lab.node(name, clock: lab.clock), horizon: nil)
    }

    /// A node that has forgotten what was deleted, and one that it has not heard of, with a row from before that time.
    private func strangers() throws -> (a: CheckedNode, b: CheckedNode) {
        let a = try lab.node("a")
        try a.node.write("INSERT INTO setting VALUES ('of a', 1)")
        try lab.settle([a])
        lab.wait(days: 40)
        try lab.settle([a])
        let b = try rememberer("b")
        try b.node.write("INSERT INTO setting VALUES ('of b', 1)")
        return (a, b)
    }

    private func load(_ maker: CheckedNode, on node: CheckedNode) throws {
        let made = try maker.node.makeSnapshot()
        let snapshots = try #require(node.node.snapshots)
        let info = try #require(try snapshots.list().first { $0.id == made.id })
        _ = try snapshots.load(info.id, partitionCount: lab.lab.partitionCount)
    }

    @Test func aSnapshotOfANodeThatHasForgottenLessBringsNothingBack() throws {
        let (a, b) = (try lab.node("a"), try rememberer("b"))
        try a.node.write("INSERT INTO setting VALUES ('gone', 1), ('gone before', 1), ('kept', 1)")
        try exchange([a.node, b.node])
        try b.node.write("DELETE FROM setting WHERE key = 'gone before'")
        try lab.settle([a, b])
        // b is away from here on, and does not hear that this row was deleted.
        try a.node.write("DELETE FROM setting WHERE key = 'gone'")
        try lab.settle([a])
        lab.wait(days: 40)
        try lab.settle([a])
        #expect(try a.stones() == 0)
        // Written at a time of which a has forgotten what was deleted, so that b has to say it once more.
        try b.node.write("INSERT INTO setting VALUES ('new', 1)")
        try load(b, on: a)
        #expect(try a.node.rows("SELECT key FROM setting") == ["kept"])
        #expect(try a.stones() == 0)
        try lab.settle([a, b])
        for node in [a, b] {
            #expect(try node.node.rows("SELECT key FROM setting ORDER BY key") == ["kept", "new"])
        }
        try expectAgreement([a, b])
    }

    /// Seed 724 of the simulator. The rows are as old as what is forgotten here, but nothing that could have deleted
    /// them is.
    ///
    /// - Parameter hasNews: true where this one has made something since that the snapshot's maker lacks, too late to
    ///   be forgotten.
    @Test(arguments: [false, true]) func aSnapshotOfANodeThatHasAllThatThisOneHasIsBelieved(hasNews: Bool) throws {
        let (a, b) = try strangers()
        try exchange([b.node])
        try b.node.makeSnapshot()
        try lab.lab.prune()
        if hasNews {
            try a.node.write("INSERT INTO setting VALUES ('news', 1)")
            try a.node.publish()
        }
        try exchange([a.node, b.node])
        #expect(try a.node.rows("SELECT key FROM setting WHERE key LIKE 'of%' ORDER BY key") == ["of a", "of b"])
        try lab.settle([a, b])
        try expectSame([a.node, b.node])
        try expectAgreement([a, b])
    }

    /// Of a node that has not heard of what this one did nobody can tell whether its old rows were deleted.
    @Test func whatASnapshotLeavesOutComesWithACheckOnceBothHaveTheSame() throws {
        let (a, b) = try strangers()
        try b.node.publish()
        try load(b, on: a)
        #expect(try a.node.rows("SELECT key FROM setting") == ["of a"])
        try lab.settle([a, b])
        try check([b, a])
        for node in [a, b] {
            #expect(try node.node.rows("SELECT key FROM setting ORDER BY key") == ["of a", "of b"])
        }
        try expectAgreement([a, b])
    }

    @Test func aRowThatIsLostIsMendedByANodeThatHasForgottenLess() throws {
        let (a, b) = (try rememberer("a"), try lab.node("b"))
        try a.node.write("INSERT INTO setting VALUES ('k', 1); INSERT INTO trip(name) VALUES ('t')")
        try lab.settle([a, b])
        lab.wait(days: 40)
        try lab.settle([a, b])
        #expect(try a.node.engine.collectedThrough() == nil && b.node.engine.collectedThrough() != nil)
        try b.damage("DELETE FROM setting; DELETE FROM trip")
        try check([a, b])
        #expect(try b.node.rows("SELECT name FROM trip UNION ALL SELECT key FROM setting") == ["t", "k"])
        #expect(try b.found().sorted() == ["missingRow mended setting", "missingRow mended trip"])
        try expectAgreement([a, b])
    }

    @Test func aDeleteThatNobodyWasToldOfIsNotForgotten() throws {
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try b.node.write("INSERT INTO setting VALUES ('k', 1)")
        try lab.settle([a, b])
        try a.node.write("DELETE FROM setting WHERE key = 'k'")
        // While a has not read this, it can't say once more what b refuses.
        try c.node.write("INSERT INTO setting VALUES ('of c', 1)")
        try exchange([c.node, b.node])
        lab.wait(days: 40)
        try lab.settle([b])
        // a hears of b, but nobody of it.
        try talk([a])
        try a.node.engine.collectTombstones(horizon: TombstoneLab.horizon)
        #expect(try a.node.engine.collectedThrough() == b.node.engine.collectedThrough())
        #expect(try a.node.engine.collectedThrough() != nil && a.stones() == 1)
        try load(b, on: a)
        #expect(try a.node.rows("SELECT key FROM setting") == ["of c"])
        try lab.settle([a, b])
        #expect(try b.node.rows("SELECT key FROM setting") == ["of c"])
        #expect(try b.quarantined() == [])
        try expectAgreement([a, b])
        // And forgotten like any other once they were.
        lab.wait(days: 40)
        try lab.settle([a, b])
        #expect(try a.stones() == 0 && b.stones() == 0)
    }

    @Test func deletesOfRowsFromBeforeTheirTableWasTrackedAreKept() throws {
        let schema = lab.lab.schema + "INSERT INTO setting VALUES ('old', 1), ('older', 1);"
        let nodes = try ["a", "b", "c"].map { try lab.checked(lab.lab.node($0, schema: schema, clock: lab.clock)) }
        let (a, b, c) = (nodes[0], nodes[1], nodes[2])
        try lab.settle(nodes)
        // c is away from here on.
        try a.node.write("INSERT INTO setting VALUES ('new', 1)")
        try a.node.write("DELETE FROM setting")
        try lab.settle([a, b])
        #expect(try a.stones() == 3 && b.stones() == 3)
        lab.wait(days: 40)
        try lab.settle([a, b])
        #expect(try a.stones() == 2 && b.stones() == 2)
        try a.node.makeSnapshot()
        try lab.lab.prune()
        // A new node that has these rows as well.
        let d = try lab.checked(lab.lab.node("d", schema: schema, clock: lab.clock))
        try lab.settle([a, b, c, d])
        for node in [a, b, c, d] {
            #expect(try node.node.rows("SELECT key FROM setting") == [], "\(node.node.name)")
            #expect(try node.stones() == 2, "\(node.node.name)")
        }
        try expectSame([a.node, b.node, c.node, d.node])
    }

    @Test func updatesOfARowThatNeverCameAreForgotten() throws {
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try lab.settle([a, b, c])
        // c gives b its row by a snapshot, and is never heard of again.
        try c.node.write("INSERT INTO setting VALUES ('k', 1)")
        try load(c, on: b)
        try b.node.write("UPDATE setting SET value = 2 WHERE key = 'k'")
        try lab.settle([a, b])
        #expect(try b.node.rows("SELECT value FROM setting") == ["2"])
        #expect(try a.node.rows("SELECT value FROM setting") == [])
        #expect(try a.node.parked().count == 1)
        lab.wait(days: 29)
        try lab.settle([a, b])
        #expect(try a.node.parked().count == 1)
        lab.wait(days: 11)
        try lab.settle([a, b])
        #expect(try a.node.parked() == [])
        // With the row comes what it was updated to.
        try load(b, on: a)
        #expect(try a.node.rows("SELECT value FROM setting") == ["2"])
    }

    @Test func nothingIsSaidOnceMoreBeforeAllIsHereThatTheOthersHave() throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try lab.settle([a, b])
        // b is away from here on.
        try b.node.write("INSERT INTO setting VALUES ('taken', 'of b'), ('new', 'of b')")
        lab.wait(days: 1)
        try a.node.write("INSERT INTO setting VALUES ('taken', 'of a')")
        try a.node.write("DELETE FROM setting WHERE key = 'taken'")
        lab.wait(days: 40)
        try lab.settle([a])
        #expect(try a.stones() == 0)
        // b hears that all this is forgotten before it reads what that was.
        try talk([b])
        #expect(try b.node.outboxCount() == 1)
        try lab.settle([a, b])
        for node in [a, b] { #expect(try node.node.rows("SELECT key, value FROM setting") == ["new|of b"]) }
        #expect(try b.node.outboxCount() == 2)
        try expectAgreement([a, b])
    }

    /// Seed 516 of the simulator.
    @Test func aDeleteIsSaidOnceMoreAlsoWhereALaterUpdateWaits() throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.node.write("INSERT INTO setting VALUES ('k', 1), ('kept', 1)")
        try lab.settle([a, b])
        try b.node.write("DELETE FROM setting WHERE key = 'k'")
        try exchange([b.node])
        lab.wait(days: 40)
        // Each forgets without the other.
        for node in [a, b] {
            try node.checker.promise()
            #expect(try node.node.engine.collectedThrough() != nil && node.stones() == 0)
        }
        try a.node.write("UPDATE setting SET value = 2 WHERE key = 'k'")
        try exchange([a.node, b.node])
        #expect(try a.quarantined().count == 1 && b.node.parked().count == 1)
        try lab.settle([a, b])
        for node in [a, b] {
            #expect(try node.node.rows("SELECT key FROM setting") == ["kept"], "\(node.node.name)")
            #expect(try node.node.parked() == [])
            #expect(try node.quarantined() == [])
        }
        try expectAgreement([a, b])
    }

    @Test func aCheckOfANodeThatHasNotHeardWhatIsForgottenIsNotAnswered() throws {
        let (a, b) = (try lab.node("a"), try rememberer("b"))
        try a.node.write("INSERT INTO setting VALUES ('gone', 1), ('kept', 1)")
        try exchange([a.node, b.node])
        try a.node.write("DELETE FROM setting WHERE key = 'gone'")
        try lab.settle([a, b])
        lab.wait(days: 40)
        try b.checker.promise()
        try talk([a])
        try a.checker.promise()
        #expect(try a.stones() == 0 && b.stones() == 1)
        // That message waits for b while it begins a check.
        let sent = a.progress.sent
        #expect(try b.checker.begin())
        try talk([a, b])
        #expect(a.progress.sent == sent)
        #expect(a.progress.agreed == 0)
        #expect(try a.found() == [] && b.found() == [])
        // It knows now.
        try check([b, a])
        #expect(a.progress.agreed == 1)
        try expectAgreement([a, b])
    }
}
