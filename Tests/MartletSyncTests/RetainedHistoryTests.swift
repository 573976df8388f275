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
        // Some of it may have come just now.
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: nil) == 0)
        b.clock.milliseconds += 60_000
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: nil) > 0)
        // The newest transaction stays.
        #expect(try b.store.fetchHistory().count == 1)
    }

    /// What other nodes wrote long ago is new here: a reader of the history has not seen it yet.
    @Test func remoteHistoryAgesFromItsArrival() throws {
        try write(a, 20)
        try a.publish()
        let day: Int64 = 86_400_000
        b.clock.milliseconds += 90 * day
        try b.consume()
        let count = try b.store.fetchHistory().count
        #expect(count > 1)
        func retain() throws -> Int {
            try b.engine.retainHistory(age: .milliseconds(30 * day), sizeBytes: nil)
        }
        for _ in 0..<2 { #expect(try retain() == 0) }
        b.clock.milliseconds += 29 * day
        #expect(try retain() == 0)
        #expect(try b.store.fetchHistory().count == count)
        b.clock.milliseconds += 3 * day
        #expect(try retain() > 0)
        #expect(try b.store.fetchHistory().count == 1)
        #expect(try retain() == 0)
    }

    /// A large transaction that is not old yet, or that a cursor keeps, is not read again every minute.
    @Test(arguments: [false, true]) func historyThatStaysIsSearchedOnce(isHeld: Bool) throws {
        if isHeld { try a.store.setCursor("reader", to: nil) }
        try a.write(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
            INSERT INTO trip(name) SELECT 'n' FROM n
            """)
        try write(a, 1)
        try a.publish()
        if isHeld { a.clock.milliseconds += 60_000 }
        let work = try (0..<3).map { _ -> Int in
            let meter = WorkMeter(a.engine.session.database)
            let deleted = try a.engine.retainHistory(age: .seconds(isHeld ? 1 : 86_400), sizeBytes: nil)
            #expect(deleted == 0)
            if isHeld { a.clock.milliseconds += 1000 }
            return meter.count
        }
        #expect(work[2] * 10 < work[0], "\(work)")
    }

    /// An agent that stops doesn't wait until all of a long history is deleted.
    @Test func aStoppedNodeLeavesTheRestOfItsOldHistoryForTheNextStart() throws {
        try write(a, 20)
        try exchange([a, b])
        b.clock.milliseconds += 60_000
        let before = try b.store.fetchHistory().count
        #expect(try b.engine.retainHistory(age: .seconds(1), sizeBytes: 1, isStopped: { true }) == 0)
        #expect(try b.store.fetchHistory().count == before)
        b.clock.milliseconds += 60_000
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

    @Test func theSizeBoundLimitsTheHistoryOfUpdates() throws {
        let bound: Int64 = 256 << 10
        try a.store.write { db in
            for id in 1...100 { try db.execute(sql: "INSERT INTO trip(id, name) VALUES (\(id), 'first')") }
        }
        var largest: Int64 = 0
        for round in 0..<25 {
            for step in 0..<5 {
                try a.store.write { try $0.execute(sql: "UPDATE trip SET name = 'name \(round).\(step)'") }
            }
            try exchange([a, b])
            for node in [a, b] {
                try node.engine.retainHistory(age: nil, sizeBytes: bound)
                // How much to delete is estimated.
                try node.engine.retainHistory(age: nil, sizeBytes: bound)
                largest = max(largest, try node.store.historySize().bytes)
            }
        }
        // 12,500 updates in all, of about 45 bytes each. A sixteenth more may wait for the next measurement, and pages
        // may be partly filled.
        #expect(largest < bound + bound / 4)
        #expect(try a.store.historyReport().size.transactions > 1)
        #expect(try b.store.historyReport().size.transactions > 1)
        #expect(try a.rows("SELECT count(*) FROM trip WHERE name = 'name 24.4'") == ["100"])
    }

    @Test func aHistoryThatHasNotGrownIsMeasuredOnce() throws {
        for _ in 0..<8 { try write(a, 200) }
        try exchange([a, b])
        let gauge = HistoryGauge()
        func isDue() throws -> Bool { try a.engine.session.read { try gauge.isDue($0, bound: 300 << 10) } }
        #expect(try isDue())
        gauge.note(isOver: false, hasDeleted: false)
        #expect(try !isDue())
        try write(a, 1)
        #expect(try !isDue())
        try write(a, 400)
        #expect(try isDue())
        // Beyond the bound, it is measured again once a cursor has moved: more may be deleted by then.
        gauge.note(isOver: true, hasDeleted: false)
        #expect(try !isDue())
        try a.store.setCursor("reader", to: nil)
        #expect(try isDue())
        // After a deletion, once more.
        gauge.note(isOver: true, hasDeleted: true)
        #expect(try isDue())
        #expect(try !a.engine.session.read { try gauge.isDue($0, bound: 1 << 40) })
    }

    /// Another program may keep the write lock for too long.
    @Test func aDeletionThatFailsIsTriedAgain() throws {
        var files = StoreConfiguration.impatient
        files.busyTimeout = .milliseconds(20)
        let c = try lab.node("c", files: files)
        try write(c, 100)
        try c.publish()
        let other = try DatabaseQueue.ofAnotherProgram(c.path)
        var isLocked = false
        #expect(throws: StoreError.self) {
            try c.engine.retainHistory(age: nil, sizeBytes: 1) {
                if !isLocked { isLocked = (try? other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }) != nil }
                return false
            }
        }
        #expect(isLocked)
        try other.inDatabase { try $0.execute(sql: "ROLLBACK") }
        try other.close()
        #expect(try c.engine.retainHistory(age: nil, sizeBytes: 1) > 0)
    }

    @Test func theStoreRecordsWhatTheAgentKeeps() throws {
        #expect(try a.store.historyReport().bounds == nil)
        try a.engine.retainHistory(age: .seconds(30 * 86_400), sizeBytes: 256 << 20)
        #expect(
            try a.store.historyReport().bounds == HistoryBounds(age: .seconds(30 * 86_400), sizeBytes: 256 << 20))
        try a.engine.retainHistory(age: nil, sizeBytes: nil)
        #expect(try a.store.historyReport().bounds == HistoryBounds())
        // A program may mean "for ever" by that.
        try a.engine.retainHistory(age: .seconds(Int64.max), sizeBytes: .max)
        #expect(try a.store.historyReport().bounds?.sizeBytes == .max)
    }

    private func write(_ node: TestNode, _ count: Int) throws {
        for _ in 0..<count { try node.write("INSERT INTO trip(name) VALUES ('\(node.name)')") }
    }
}
