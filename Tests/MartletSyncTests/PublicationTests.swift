import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Waiting until the broker has acknowledged committed transactions.
@Suite struct PublicationTests {
    let lab: Lab
    let a: TestNode

    init() throws {
        lab = try Lab()
        a = try lab.node("a")
    }

    @Test func aPublicationIsAcknowledgedWithItsLastTransaction() throws {
        var nothing = try Publication(a.store, through: nil)
        #expect(try nothing.isAcknowledged(a.store))
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.foreignWrite("INSERT INTO setting VALUES ('l', 2)")
        var both = try Publication(a.store, through: nil)
        #expect(try !both.isAcknowledged(a.store))
        // The transactions are stamped and sent, but not acknowledged.
        a.publisher.step()
        #expect(try !both.isAcknowledged(a.store))
        // Later transactions need not be acknowledged.
        try a.publish()
        try a.write("INSERT INTO setting VALUES ('m', 3)")
        #expect(try both.isAcknowledged(a.store))
        var last = try Publication(a.store, through: nil)
        #expect(try !last.isAcknowledged(a.store))
        try a.publish()
        #expect(try last.isAcknowledged(a.store))
    }

    @Test func aPublicationThroughATokenDoesNotWaitForLaterTransactions() throws {
        let written = try a.store.writeTransaction(author: "till") { db in
            try db.execute(sql: "INSERT INTO setting VALUES ('k', 1)")
            return db.changesCount
        }
        #expect(written.value == 1)
        let token = try #require(written.token)
        try a.publish()
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        var first = try Publication(a.store, through: token)
        #expect(try first.isAcknowledged(a.store))
        var all = try Publication(a.store, through: nil)
        #expect(try !all.isAcknowledged(a.store))
        #expect(try a.store.writeTransaction { _ in }.token == nil)
    }

    @Test func aTokenOfAnotherStoreOrOfTheFutureIsRefused() throws {
        let b = try lab.node("b")
        try b.write("INSERT INTO setting VALUES ('k', 1)")
        let last = try #require(try b.store.lastToken())
        for token in [last, HistoryToken(store: a.store.identifier, transaction: 1 << 40)] {
            let error = #expect(throws: StoreError.self) { try Publication(a.store, through: token) }
            #expect(error?.code == .historyTokenExpired)
        }
    }

    @Test func aPublicationDoesNotWaitForRemoteTransactions() throws {
        let b = try lab.node("b")
        try b.write("INSERT INTO setting VALUES ('k', 1)")
        try b.publish()
        try a.consume()
        var publication = try Publication(a.store, through: nil)
        #expect(try publication.isAcknowledged(a.store))
    }

    @Test func aPublicationOfAStoreWithoutAnAgentIsNotAcknowledged() throws {
        let temporary = try TemporaryStore("CREATE TABLE t(id INTEGER PRIMARY KEY)")
        var nothing = try Publication(temporary.store, through: nil)
        #expect(try nothing.isAcknowledged(temporary.store))
        try temporary.store.write { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
        var publication = try Publication(temporary.store, through: nil)
        #expect(try !publication.isAcknowledged(temporary.store))
    }

    /// If a slice ends with the last change of a transaction that began in an earlier one, all of its changes have
    /// stamps, and its message is not in the outbox yet.
    @Test(arguments: [1, 2, 4]) func p187ATransactionIsNotPublishedBeforeItsLastPartIsInTheOutbox(slice: Int) throws {
        let a = try lab.node("slow") { $0.enqueueLimits.changes = slice }
        try a.write("INSERT INTO setting VALUES ('k', 1), ('l', 2), ('m', 3), ('n', 4)")
        var publication = try Publication(a.store, through: nil)
        var delivery = try Delivery(a.store, to: .broker)
        var steps = 0
        try runUntilNothingMoves("enqueuing", limit: 20) {
            #expect(try !publication.isAcknowledged(a.store), "after \(steps) slices")
            #expect(try delivery.missing(a.store) == nil, "after \(steps) slices")
            a.publisher.step()
            steps += 1
            return try a.outboxCount() == 0
        }
        try a.publish()
        #expect(try publication.isAcknowledged(a.store))
        #expect(publication.sequence == 1)
    }
}
