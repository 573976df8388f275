import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// A snapshot removes rows that it does not mention, but only those that its maker must have had.
@Suite struct UnmentionedRowTests {
    let lab: TombstoneLab

    init() throws { lab = try TombstoneLab() }

    /// The maker of the snapshot mentions no row of the table: it keeps them as deferred messages, because it
    /// ignores the table, or it has dropped the table.
    @Test(arguments: [false, true]) func p178ASnapshotRemovesNoRowOfATableThatItsMakerDoesNotHave(isDropped: Bool)
        throws
    {
        var filters = SyncFilters()
        filters.ignoredTables = ["setting"]
        let (a, c) = (try lab.node("a"), try lab.node("c"))
        let maker = try lab.node("maker", filters: isDropped ? nil : filters)
        try a.node.write("INSERT INTO setting VALUES ('k', 1); INSERT INTO trip(name) VALUES ('t')")
        try lab.settle([a, maker, c])
        #expect(try c.node.rows("SELECT key FROM setting") == ["k"])
        if isDropped { try maker.node.foreignWrite("DROP TABLE setting") }
        // From here on, c is offline.
        try a.node.write("INSERT INTO trip(name) VALUES ('later')")
        try lab.settle([a, maker])
        lab.wait(days: 40)
        try lab.settle([a, maker])
        #expect(try a.node.rows("SELECT key FROM setting") == ["k"])
        #expect(try TombstoneCollection(maker.node.engine).collectedThrough() != nil)
        try maker.node.makeSnapshot()
        try lab.lab.prune()
        try exchange([c.node])
        try expectBoth(
            a.node, c.node,
            are: """
                setting key='k' value=1
                trip name='later' budget=NULL
                trip name='t' budget=NULL
                """)
    }

    /// The row is stamped under the former node ID, and only this store has it.
    @Test func p179ASnapshotRemovesNoUnpublishedRowOfAStoreThatWasForked() throws {
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        try b.node.write("INSERT INTO setting VALUES ('shared', 1)")
        try lab.settle([a, b])
        // From here on, b is offline. Its change gets a sequence and a timestamp.
        try b.node.write("INSERT INTO setting VALUES ('of b', 1)")
        _ = try b.node.engine.apply([], topic: "t")
        #expect(try b.node.engine.fork().republished == 1)
        try b.node.restart()
        try a.node.write("INSERT INTO setting VALUES ('of a', 1)")
        try lab.settle([a])
        lab.wait(days: 40)
        try lab.settle([a])
        #expect(try TombstoneCollection(a.node.engine).collectedThrough() != nil)
        try a.node.makeSnapshot()
        try lab.lab.prune()
        let forked = try lab.checked(b.node)
        try lab.settle([a, forked])
        try expectBoth(
            a.node, forked.node,
            are: """
                setting key='of a' value=1
                setting key='of b' value=1
                setting key='shared' value=1
                """)
    }
}
