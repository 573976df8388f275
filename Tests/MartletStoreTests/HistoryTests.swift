import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Transactions, their authors and times, and the results of queries.
@Suite struct HistoryTests {
    private static let schema =
        "CREATE TABLE item(id INTEGER PRIMARY KEY, v); CREATE TABLE other(id INTEGER PRIMARY KEY, v)"

    @Test func p29foreignWritesFormTransactionsOfTheirOwn() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.run(
            .shell,
            "BEGIN; INSERT INTO item VALUES (1, 1); INSERT INTO item VALUES (2, 1); COMMIT; "
                + "INSERT INTO item VALUES (3, 1)")
        try temporary.store.write(author: "me", context: "here") {
            try $0.execute(sql: "INSERT INTO item VALUES (4, 1), (5, 1)")
        }
        try temporary.store.write(author: "me") { try $0.execute(sql: "INSERT INTO item VALUES (6, 1)") }
        try temporary.run(.python, "INSERT INTO item VALUES (7, 1)")
        let transactions = try temporary.store.fetchHistory()
        #expect(transactions.map { $0.changes.map(\.row) } == [[1, 2, 3], [4, 5], [6], [7]])
        #expect(transactions.map(\.author) == [nil, "me", "me", nil])
        #expect(transactions.map(\.context) == [nil, "here", nil, nil])
        #expect(transactions[0].process == nil)
        #expect(transactions[1].process?.isEmpty == false)
        #expect(transactions.map(\.token) == transactions.map(\.token).sorted())
        #expect(Set(transactions.map(\.token)).count == 4)
    }

    @Test func p29aForeignTransactionIsNeverSplit() throws {
        let temporary = try TemporaryStore(Self.schema)
        let other = try temporary.rawConnection()
        try other.inTransaction { db in
            try db.execute(sql: "INSERT INTO item VALUES (1, 1)")
            // The history neither shows nor closes an uncommitted transaction.
            #expect(try temporary.store.fetchHistory().isEmpty)
            try db.execute(sql: "INSERT INTO item VALUES (2, 1)")
            return .commit
        }
        #expect(try temporary.store.fetchHistory().map { $0.changes.count } == [2])
        try other.inTransaction { db in
            try db.execute(sql: "INSERT INTO item VALUES (3, 1)")
            return .rollback
        }
        #expect(try temporary.store.fetchHistory().count == 1)
    }

    @Test func foreignTransactionsGetTheConfiguredAuthor() throws {
        var configuration = StoreConfiguration()
        configuration.foreignAuthor = "till"
        let temporary = try TemporaryStore(Self.schema, configuration: configuration)
        try temporary.run(.shell, "INSERT INTO item VALUES (1, 1)")
        #expect(try temporary.store.fetchHistory().map(\.author) == ["till"])
    }

    /// A transaction of the sync author is never published.
    @Test(arguments: [TransactionAuthor.sync, TransactionAuthor.ingest])
    func anAuthorThatMartletItselfUsesIsRefused(_ author: String) throws {
        let temporary = try TemporaryStore(Self.schema)
        func expectRefused(_ write: () throws -> Void) {
            do {
                try write()
                Issue.record("accepted")
            } catch {
                #expect((error as? StoreError)?.code == .invalidArgument, "\(error)")
            }
        }
        let sql = "INSERT INTO item VALUES (1, 1)"
        expectRefused { try temporary.store.write(author: author) { try $0.execute(sql: sql) } }
        expectRefused { _ = try temporary.store.writeTransaction(author: author) { try $0.execute(sql: sql) } }
        expectRefused {
            try temporary.store.alter(context: "test") { alteration in
                try alteration.database.execute(sql: sql)
                _ = try alteration.closeTransaction(author: author, context: nil)
            }
        }
        #expect(try temporary.store.fetchHistory().isEmpty)
        var configuration = StoreConfiguration()
        configuration.foreignAuthor = author
        #expect(configuration.validate().count == 1)
    }

    @Test func p24closingATransactionLateKeepsTheTimeOfEachChange() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO item VALUES (1, 1); INSERT INTO item VALUES (2, 1)")
        try temporary.setTimes("id * 1000", where: "e <> 0")
        let transaction = try #require(try temporary.store.fetchHistory().last)
        let ids = transaction.changes.map(\.id)
        #expect(transaction.changes.map(\.timestamp) == ids.map { Date(timeIntervalSince1970: Double($0)) })
        #expect(transaction.timestamp == transaction.changes.last?.timestamp)
    }

    @Test func changesHaveWallClockTimes() throws {
        let temporary = try TemporaryStore(Self.schema)
        let before = Date()
        try temporary.run(.shell, "INSERT INTO item VALUES (1, 1)")
        let after = Date()
        let time = try #require(try temporary.store.fetchHistory().last?.timestamp)
        #expect(time.timeIntervalSince(before) > -0.002)
        #expect(after.timeIntervalSince(time) > -0.002)
    }

    @Test func aBodyThatThrowsOrChangesNothingMakesNoTransaction() throws {
        struct Stop: Error {}
        let temporary = try TemporaryStore(Self.schema)
        #expect(throws: Stop.self) {
            try temporary.store.write(author: "me") { db in
                try db.execute(sql: "INSERT INTO item VALUES (1, 1)")
                throw Stop()
            }
        }
        try temporary.store.write(author: "me") { try $0.execute(sql: "DELETE FROM item") }
        #expect(try temporary.store.fetchHistory().isEmpty)
        #expect(try temporary.store.lastToken() == nil)
    }

    @Test func queriesFilterByAuthorEntityTimeAndCount() throws {
        let temporary = try TemporaryStore(Self.schema)
        let store = temporary.store
        try store.write(author: "a") { try $0.execute(sql: "INSERT INTO item VALUES (1, 1)") }
        try store.write(author: "b") { try $0.execute(sql: "INSERT INTO other VALUES (2, 1)") }
        try store.write { try $0.execute(sql: "INSERT INTO item VALUES (3, 1); INSERT INTO other VALUES (3, 1)") }
        try temporary.setTimes("id * 1000")
        let all = try store.fetchHistory()
        func rows(_ set: (inout HistoryQuery) -> Void) throws -> [Int64?] {
            var query = HistoryQuery()
            set(&query)
            return try store.fetchHistory(query).map { $0.changes.first?.row }
        }
        #expect(try rows { $0.author = .equal("a") } == [1])
        #expect(try rows { $0.author = .notEqual("a") } == [2, 3])
        #expect(try rows { $0.author = .absent } == [3])
        #expect(try rows { $0.entities = ["other"] } == [2, 3])
        #expect(try rows { $0.entities = ["item", "other"] } == [1, 2, 3])
        #expect(try rows { $0.newestFirst = true } == [3, 2, 1])
        #expect(
            try rows {
                $0.newestFirst = true; $0.limit = 1
            } == [3])
        #expect(try rows { $0.limit = 0 } == [])
        #expect(
            try rows {
                $0.after = all[0].token; $0.through = all[1].token
            } == [2])
        #expect(try rows { $0.since = all[1].timestamp } == [2, 3])
        #expect(try rows { $0.before = all[1].timestamp } == [1])
        #expect(try store.lastToken() == all[2].token)
        #expect(throws: StoreError.self) { try rows { $0.entities = ["nothing"] } }
    }

    @Test func tokensSurviveText() throws {
        let token = HistoryToken(store: UUID(), transaction: 7)
        #expect(HistoryToken(token.description) == token)
        #expect(try JSONDecoder().decode(HistoryToken.self, from: JSONEncoder().encode(token)) == token)
        #expect(HistoryToken("") == nil)
        #expect(HistoryToken("\(UUID().uuidString):-1") == nil)
    }

    @Test func hiddenIDsStayTheSameAfterReopening() throws {
        let temporary = try TemporaryStore(Self.schema)
        try temporary.raw("INSERT INTO item VALUES (1, 1); UPDATE item SET v = 2")
        let ids = try temporary.store.fetchHistory().flatMap(\.changes).map(\.identity)
        #expect(Set(ids).count == 1 && ids[0] != nil)
        let again = try Store(path: temporary.path)
        #expect(try again.fetchHistory().flatMap(\.changes).map(\.identity) == ids)
        #expect(again.identifier == temporary.store.identifier)
        try again.close()
    }

    /// A file that is restored from a backup reuses the numbers of lost changes, and other nodes may know the lost
    /// rows.
    @Test func p147RowsOfARestoredFileGetNewIDs() throws {
        let temporary = try TemporaryStore("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)")
        let folder = try TemporaryFolder()
        try temporary.run(.shell, "VACUUM INTO '\(folder.path("store.db"))'")
        try temporary.raw("INSERT INTO note VALUES (1, 'lost')")
        SQLiteClock.advance()
        let restored = try TemporaryStore(folder)
        try restored.raw("INSERT INTO note VALUES (1, 'other')")
        let changes = try [temporary, restored].map { try #require($0.store.fetchHistory().last?.changes.last) }
        #expect(changes[0].id == changes[1].id)
        #expect(changes[0].identity != nil && changes[0].identity != changes[1].identity)
    }

    /// No number of milliseconds stands for them.
    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e300])
    func datesBeyondTheRangeOfTimeAreAccepted(seconds: Double) throws {
        let temporary = try TemporaryStore("CREATE TABLE t(id INTEGER PRIMARY KEY)")
        try temporary.raw("INSERT INTO t VALUES (1)")
        let date = Date(timeIntervalSince1970: seconds)
        var since = HistoryQuery()
        since.since = date
        var before = HistoryQuery()
        before.before = date
        let counts = try [since, before].map { try temporary.store.fetchHistory($0).count }
        #expect(counts == (seconds > 0 ? [0, 1] : [1, 0]))
    }
}
