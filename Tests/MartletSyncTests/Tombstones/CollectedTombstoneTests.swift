import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What a node that has collected tombstones accepts from other nodes, and what it keeps.
@Suite struct CollectedTombstoneTests {
    let lab: TombstoneLab

    init() throws { lab = try TombstoneLab() }

    /// A node that collects no tombstones.
    private func nodeThatCollectsNothing(_ name: String) throws -> CheckedNode {
        try lab.checked(lab.lab.node(name, clock: lab.clock), horizon: nil)
    }

    /// A node that has collected its tombstones, and a node that it has not heard of, with a row from before that time.
    private func collectorAndStranger() throws -> (a: CheckedNode, b: CheckedNode) {
        let a = try lab.node("a")
        try a.node.write("INSERT INTO setting VALUES ('of a', 1)")
        try lab.settle([a])
        lab.wait(days: 40)
        try lab.settle([a])
        let b = try nodeThatCollectsNothing("b")
        try b.node.write("INSERT INTO setting VALUES ('of b', 1)")
        return (a, b)
    }

    private func load(_ maker: CheckedNode, on node: CheckedNode) throws {
        let made = try maker.node.makeSnapshot()
        let snapshots = try #require(node.node.snapshots)
        let info = try #require(try snapshots.list().first { $0.id == made.id })
        _ = try snapshots.load(info.id, partitionCount: lab.lab.partitionCount)
    }

    /// The node has collected tombstones while its clock was ahead by more than a year.
    @Test func aRestampedNodeAcceptsTransactionsOfTheTimeForWhichItCollectedTombstones() throws {
        let clock = TestClock(SQLiteClock.milliseconds)
        let (a, b) = (try lab.checked(lab.lab.node("a", clock: clock)), try nodeThatCollectsNothing("b"))
        try b.node.write("INSERT INTO setting VALUES ('old', 1)")
        try exchange([a.node, b.node])
        clock.milliseconds += 400 * 86_400_000
        try a.antiEntropy.report()
        try b.node.write("INSERT INTO setting VALUES ('new', 1)")
        SQLiteClock.advance()
        clock.milliseconds = SQLiteClock.milliseconds
        #expect(try TombstoneCollection(a.node.engine).collectedThrough() ?? 0 > clock.milliseconds)
        try exchange([a.node, b.node])
        #expect(try a.node.keys() == ["old"])
        _ = try a.node.engine.restamp()
        #expect(try TombstoneCollection(a.node.engine).collectedThrough() == clock.milliseconds)
        // The author hears that its transaction was refused, and republishes it.
        try lab.settle([a, b])
        #expect(try a.node.keys() == ["new", "old"])
        #expect(try a.quarantined() == [])
    }

    @Test func aSnapshotOfANodeWithMoreTombstonesRevivesNoRow() throws {
        let (a, b) = (try lab.node("a"), try nodeThatCollectsNothing("b"))
        try a.node.write("INSERT INTO setting VALUES ('gone', 1), ('gone before', 1), ('kept', 1)")
        try exchange([a.node, b.node])
        try b.node.write("DELETE FROM setting WHERE key = 'gone before'")
        try lab.settle([a, b])
        // From here on, b is offline and doesn't learn that this row was deleted.
        try a.node.write("DELETE FROM setting WHERE key = 'gone'")
        try lab.settle([a])
        lab.wait(days: 40)
        try lab.settle([a])
        #expect(try a.tombstoneCount() == 0)
        // b's row is older than the tombstones that a has collected, so b has to republish it.
        try b.node.write("INSERT INTO setting VALUES ('new', 1)")
        try load(b, on: a)
        try expectState(a.node, is: "setting key='kept' value=1")
        #expect(try a.tombstoneCount() == 0)
        try lab.settle([a, b])
        try expectBoth(
            a.node, b.node,
            are: """
                setting key='kept' value=1
                setting key='new' value=1
                """)
        try expectAgreement([a, b])
    }

    /// Simulator seed 724. The rows are older than the collected tombstones, but none of those could have deleted them.
    ///
    /// - Parameter hasNews: true if this node has since written something that the snapshot's maker lacks, too recent
    ///   to be collected.
    @Test(arguments: [false, true]) func aSnapshotOfANodeThatHasEverythingOfThisNodeIsTrusted(hasNews: Bool) throws {
        let (a, b) = try collectorAndStranger()
        try exchange([b.node])
        try b.node.makeSnapshot()
        try lab.lab.prune()
        if hasNews {
            try a.node.write("INSERT INTO setting VALUES ('news', 1)")
            try a.node.publish()
        }
        try exchange([a.node, b.node])
        let expected = (hasNews ? ["news", "of a", "of b"] : ["of a", "of b"])
            .map { "setting key='\($0)' value=1" }.joined(separator: "\n")
        try expectState(a.node, is: expected)
        try lab.settle([a, b])
        try expectState(b.node, is: expected)
        try expectSame([a.node, b.node])
        try expectAgreement([a, b])
    }

    /// If a node has not heard of what this one wrote, nobody can tell whether its old rows were deleted.
    @Test func aCheckBringsWhatASnapshotLeftOutOnceBothHaveTheSame() throws {
        let (a, b) = try collectorAndStranger()
        try b.node.publish()
        try load(b, on: a)
        try expectState(a.node, is: "setting key='of a' value=1")
        try lab.settle([a, b])
        try check([b, a])
        try expectBoth(
            a.node, b.node,
            are: """
                setting key='of a' value=1
                setting key='of b' value=1
                """)
        try expectAgreement([a, b])
    }

    @Test func aLostRowIsRepairedByANodeWithMoreTombstones() throws {
        let (a, b) = (try nodeThatCollectsNothing("a"), try lab.node("b"))
        try a.node.write("INSERT INTO setting VALUES ('k', 1); INSERT INTO trip(name) VALUES ('t')")
        try lab.settle([a, b])
        lab.wait(days: 40)
        try lab.settle([a, b])
        #expect(
            try TombstoneCollection(a.node.engine).collectedThrough() == nil
                && TombstoneCollection(b.node.engine).collectedThrough() != nil)
        try b.damage("DELETE FROM setting; DELETE FROM trip")
        try check([a, b])
        try expectBoth(
            a.node, b.node,
            are: """
                setting key='k' value=1
                trip name='t' budget=NULL
                """)
        #expect(try b.found().sorted() == ["missingRow repaired setting", "missingRow repaired trip"])
        try expectAgreement([a, b])
    }

    /// A node that stops doesn't wait until all of many tombstones are collected.
    @Test func aStoppedNodeLeavesItsTombstonesForTheNextReport() throws {
        let (a, b) = (try nodeThatCollectsNothing("a"), try lab.node("b"))
        try b.node.write("INSERT INTO setting VALUES ('k', 1)")
        try lab.settle([a, b])
        try b.node.write("DELETE FROM setting")
        try lab.settle([a, b])
        lab.wait(days: 40)
        try lab.settle([a, b])
        let collection = TombstoneCollection(a.node.engine)
        #expect(try collection.collect(horizon: TombstoneLab.horizon, isStopped: { true }) == 0)
        #expect(try a.tombstoneCount() == 1)
        #expect(try collection.collect(horizon: TombstoneLab.horizon) == 1)
        #expect(try a.tombstoneCount() == 0)
    }

    @Test func anUnpublishedDeleteIsNotCollected() throws {
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try b.node.write("INSERT INTO setting VALUES ('k', 1)")
        try lab.settle([a, b])
        try a.node.write("DELETE FROM setting WHERE key = 'k'")
        // As long as a has not read this, it can't republish what b refuses.
        try c.node.write("INSERT INTO setting VALUES ('of c', 1)")
        try exchange([c.node, b.node])
        lab.wait(days: 40)
        try lab.settle([b])
        // a hears of b, but no node hears of a.
        try talk([a])
        try TombstoneCollection(a.node.engine).collect(horizon: TombstoneLab.horizon)
        #expect(
            try TombstoneCollection(a.node.engine).collectedThrough()
                == TombstoneCollection(b.node.engine).collectedThrough())
        #expect(try TombstoneCollection(a.node.engine).collectedThrough() != nil && a.tombstoneCount() == 1)
        try load(b, on: a)
        try expectState(a.node, is: "setting key='of c' value=1")
        try lab.settle([a, b])
        try expectState(b.node, is: "setting key='of c' value=1")
        try expectAgreement([a, b])
        // Once they are published, their tombstones are collected like all others.
        lab.wait(days: 40)
        try lab.settle([a, b])
        #expect(try a.tombstoneCount() == 0 && b.tombstoneCount() == 0)
    }

    @Test func tombstonesOfRowsFromBeforeTheAttachAreKept() throws {
        let schema = lab.lab.schema + "INSERT INTO setting VALUES ('old', 1), ('older', 1);"
        let nodes = try ["a", "b", "c"].map { try lab.checked(lab.lab.node($0, schema: schema, clock: lab.clock)) }
        let (a, b, c) = (nodes[0], nodes[1], nodes[2])
        try lab.settle(nodes)
        // From here on, c is offline.
        try a.node.write("INSERT INTO setting VALUES ('new', 1)")
        try a.node.write("DELETE FROM setting")
        try lab.settle([a, b])
        #expect(try a.tombstoneCount() == 3 && b.tombstoneCount() == 3)
        lab.wait(days: 40)
        try lab.settle([a, b])
        #expect(try a.tombstoneCount() == 2 && b.tombstoneCount() == 2)
        try a.node.makeSnapshot()
        try lab.lab.prune()
        // A new node that has these rows, too.
        let d = try lab.checked(lab.lab.node("d", schema: schema, clock: lab.clock))
        try lab.settle([a, b, c, d])
        try expectAll([a, b, c, d].map(\.node), are: "nothing")
        for node in [a, b, c, d] { #expect(try node.tombstoneCount() == 2, "\(node.node.name)") }
        try expectSame([a.node, b.node, c.node, d.node])
    }

    @Test func pendingUpdatesOfARowThatNeverArrivedAreCollected() throws {
        let (a, b, c) = (try lab.node("a"), try lab.node("b"), try lab.node("c"))
        try lab.settle([a, b, c])
        // c gives b its row by a snapshot, and is never heard of again.
        try c.node.write("INSERT INTO setting VALUES ('k', 1)")
        try load(c, on: b)
        try b.node.write("UPDATE setting SET value = 2 WHERE key = 'k'")
        try lab.settle([a, b])
        try expectState(b.node, is: "setting key='k' value=2")
        try expectState(a.node, is: "pending missingRow setting key='k' value=2")
        lab.wait(days: 29)
        try lab.settle([a, b])
        try expectState(a.node, is: "pending missingRow setting key='k' value=2")
        lab.wait(days: 11)
        try lab.settle([a, b])
        #expect(try a.node.parked() == [])
        // The row arrives with its updated value.
        try load(b, on: a)
        try expectBoth(a.node, b.node, are: "setting key='k' value=2")
    }

    @Test func nothingIsRepublishedBeforeANodeHasEverythingOfTheOthers() throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try lab.settle([a, b])
        // From here on, b is offline.
        try b.node.write("INSERT INTO setting VALUES ('taken', 'of b'), ('new', 'of b')")
        lab.wait(days: 1)
        try a.node.write("INSERT INTO setting VALUES ('taken', 'of a')")
        try a.node.write("DELETE FROM setting WHERE key = 'taken'")
        lab.wait(days: 40)
        try lab.settle([a])
        #expect(try a.tombstoneCount() == 0)
        // b learns that all of this was collected before it reads the changes themselves.
        try talk([b])
        #expect(try b.node.outboxCount() == 1)
        try lab.settle([a, b])
        try expectBoth(a.node, b.node, are: "setting key='new' value='of b'")
        #expect(try b.node.outboxCount() == 2)
        try expectAgreement([a, b])
    }

    /// Simulator seed 516.
    @Test func aDeleteIsRepublishedEvenIfALaterUpdateIsPending() throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try a.node.write("INSERT INTO setting VALUES ('k', 1), ('kept', 1)")
        try lab.settle([a, b])
        try b.node.write("DELETE FROM setting WHERE key = 'k'")
        try exchange([b.node])
        lab.wait(days: 40)
        // Each node collects without the other.
        for node in [a, b] {
            try node.antiEntropy.report()
            #expect(try TombstoneCollection(node.node.engine).collectedThrough() != nil && node.tombstoneCount() == 0)
        }
        try a.node.write("UPDATE setting SET value = 2 WHERE key = 'k'")
        try exchange([a.node, b.node])
        #expect(try a.quarantined().count == 1 && b.node.parked().count == 1)
        try lab.settle([a, b])
        try expectBoth(a.node, b.node, are: "setting key='kept' value=1")
        for node in [a, b] { #expect(try node.node.parked() == []) }
        try expectAgreement([a, b])
    }

    @Test func aCheckOfANodeThatDoesNotKnowWhatWasCollectedIsNotAnswered() throws {
        let (a, b) = (try lab.node("a"), try nodeThatCollectsNothing("b"))
        try a.node.write("INSERT INTO setting VALUES ('gone', 1), ('kept', 1)")
        try exchange([a.node, b.node])
        try a.node.write("DELETE FROM setting WHERE key = 'gone'")
        try lab.settle([a, b])
        lab.wait(days: 40)
        try b.antiEntropy.report()
        try talk([a])
        try a.antiEntropy.report()
        #expect(try a.tombstoneCount() == 0 && b.tombstoneCount() == 1)
        // b has not read that message yet when it begins a check.
        let sent = a.progress.sent
        #expect(try b.antiEntropy.begin())
        try talk([a, b])
        #expect(a.progress.sent == sent)
        #expect(a.progress.agreed == 0)
        #expect(try a.found() == [] && b.found() == [])
        // Now b has read it.
        try check([b, a])
        #expect(a.progress.agreed == 1)
        try expectAgreement([a, b])
    }
}
