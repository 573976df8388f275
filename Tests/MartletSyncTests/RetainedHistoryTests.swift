import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Which history the agent's retention may delete.
@Suite struct RetainedHistoryTests {
    private let lab: Lab
    private let a: TestNode
    private let b: TestNode

    init() throws {
        lab = try Lab()
        a = try lab.node("a")
        b = try lab.node("b")
    }

    @Test func aNodeThatOnlyReadsDeletesRemoteHistory() throws {
        try write(a, 20)
        try exchange([a, b])
        b.clock.milliseconds += 60_000
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: nil) > 0)
        // The newest transaction stays.
        #expect(try b.store.fetchHistory().count == 1)
    }

    /// An agent that stops doesn't wait until all of a long history is deleted.
    @Test func aStoppedNodeLeavesTheRestOfItsOldHistoryForTheNextStart() throws {
        try write(a, 20)
        try exchange([a, b])
        b.clock.milliseconds += 60_000
        let before = try b.store.fetchHistory().count
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: 1, isStopped: { true }) == 0)
        #expect(try b.store.fetchHistory().count == before)
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: nil) > 0)
    }

    @Test func anIdlePublisherDoesNotHoldBackAProgramsOwnPruning() throws {
        for _ in 0..<8 { try write(a, 200) }
        try exchange([a, b])
        let report = try b.store.deleteHistory(through: try #require(try b.store.lastToken()))
        // The cursor follows only now and then.
        #expect(report.deletedCount > 500)
    }

    @Test func unpublishedTransactionsAreKept() throws {
        try write(b, 3)
        try b.consume()
        try write(a, 20)
        try a.publish()
        try b.consume()
        b.clock.milliseconds += 60_000
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: nil) == 0)
        try exchange([a, b])
        #expect(try a.rows("SELECT count(*) FROM trip") == ["23"])
        b.clock.milliseconds += 60_000
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: nil) > 0)
    }

    @Test func manuallyPrunedHistoryLeavesTheOutboxOnceItIsAcknowledged() throws {
        try write(a, 5)
        try a.publish()
        try write(a, 2)
        _ = try a.engine.retainHistory(age: nil, sizeBytes: nil)
        #expect(try a.outboxCount() == 5)
        try a.store.deleteHistory(through: try #require(try a.store.lastToken()))
        try Outbox.trim(a.store)
        #expect(try !a.outbox().contains { $0.sequence <= 5 })
        try exchange([a, b])
        #expect(try b.rows("SELECT count(*) FROM trip") == ["7"])
    }

    @Test func aTransactionThatAnotherProgramHasJustWrittenIsUnpublished() throws {
        try write(a, 1)
        try exchange([a, b])
        #expect(try SyncStatus.read(a.store).unpublished == 0)
        try a.foreignWrite("INSERT INTO trip(name) VALUES ('w1'); INSERT INTO trip(name) VALUES ('w2')")
        #expect(try SyncStatus.read(a.store).unpublished == 1)
        try exchange([a, b])
        #expect(try SyncStatus.read(a.store).unpublished == 0)
    }

    @Test func aNodeWhoseNewestTransactionWasDeletedPublishesLaterOnes() throws {
        try write(a, 2)
        try exchange([a, b])
        // This sets the publisher's cursor.
        _ = try a.engine.retainHistory(age: nil, sizeBytes: nil)
        try a.store.deleteHistory(through: try #require(try a.store.lastToken()))
        #expect(try a.store.fetchHistory() == [])
        #expect(try SyncStatus.read(a.store).unpublished == 0)
        try exchange([a, b])
        try write(a, 1)
        #expect(try SyncStatus.read(a.store).unpublished == 1)
        try exchange([a, b])
        #expect(try b.rows("SELECT count(*) FROM trip") == ["3"])
        #expect(try SyncStatus.read(a.store).unpublished == 0)
        try write(b, 1)
        try exchange([a, b])
        #expect(try a.rows("SELECT count(*) FROM trip") == ["4"])
        #expect(try a.store.fetchHistory().map(\.author) == [nil, TransactionAuthor.sync])
    }

    private func write(_ node: TestNode, _ count: Int) throws {
        for _ in 0..<count { try node.write("INSERT INTO trip(name) VALUES ('\(node.name)')") }
    }
}
