import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// Which part of the history may be deleted, and what a reader sees afterwards.
@Suite struct RetentionTests {
    private func store(_ count: Int) throws -> TemporaryStore {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        for index in 0..<count {
            try temporary.store.write(author: "me") { try $0.execute(sql: "INSERT INTO item(v) VALUES (\(index))") }
        }
        return temporary
    }

    private func expired(_ body: () throws -> Void) -> Bool {
        do {
            try body()
            return false
        } catch let error as StoreError {
            return error.code == .historyTokenExpired && !error.message.isEmpty
        } catch {
            return false
        }
    }

    @Test func p04deletionStopsAtTheCursorOfAReader() throws {
        let temporary = try store(5)
        let store = temporary.store
        let tokens = try store.fetchHistory().map(\.token)
        try store.setCursor("reader", to: tokens[1])
        try store.setCursor("other", to: tokens[3])
        let report = try store.deleteHistory(through: tokens[4])
        #expect(report.heldBackBy == "reader")
        #expect(report.deletedThrough == tokens[1])
        #expect(try store.fetchHistory(HistoryQuery(after: tokens[1])).map(\.token) == Array(tokens[2...]))
        try store.setCursor("new", to: nil)
        #expect(try store.deleteHistory(through: tokens[4]).heldBackBy == "new")
        #expect(try store.cursors().map(\.name) == ["new", "other", "reader"])
        #expect(try store.removeCursor("new"))
        #expect(try !store.removeCursor("new"))
        #expect(try store.fetchHistory().count == 3)
    }

    @Test func aTransactionThatWasDeletedOrNeverMadeIsNotFound() throws {
        let temporary = try store(3)
        let store = temporary.store
        let all = try store.fetchHistory()
        try store.deleteHistory(through: all[1].token)
        #expect(try store.transaction(all[0].id) == nil)
        #expect(try store.transaction(all[1].id) == nil)
        #expect(try store.transaction(all[2].id)?.token == all[2].token)
        #expect(try store.transaction(all[2].id + 1) == nil)
    }

    @Test func deletionRemovesChosenTransactionsInBatches() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        let store = temporary.store
        for author in ["a", "b", "a", "b"] {
            try store.write(author: author) { db in
                for _ in 0..<6_000 { try db.execute(sql: "INSERT INTO item(v) VALUES (1)") }
            }
        }
        let first = try #require(try store.fetchHistory().first?.token)
        try store.setCursor("reader", to: first)
        let of = { (author: String) in
            try store.deleteHistory { names in
                HistoryClause(condition: "\(names.author) = ?", arguments: [.text(author)])
            }
        }
        let held = try of("a")
        #expect(held.deletedCount == 6_001 && held.heldBackBy == "reader")
        try store.removeCursor("reader")
        let rest = try of("a")
        #expect(rest.deletedCount == 6_001 && rest.heldBackBy == nil)
        let left = try store.fetchHistory()
        #expect(left.map(\.author) == ["b", "b"] && left.map(\.changes.count) == [6_000, 6_000])
        #expect(try of("b").deletedCount == 12_002)
        #expect(try store.fetchHistory() == [])
        #expect(try store.audit().isClean)
    }

    @Test func deletionRemovesTheNewestTransactionIfChosen() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        let store = temporary.store
        func write(_ author: String) throws {
            try store.write(author: author) { try $0.execute(sql: "INSERT INTO item(v) VALUES (1)") }
        }
        func delete(_ author: String) throws -> PruneReport {
            try store.deleteHistory { names in
                HistoryClause(condition: "\(names.author) = ?", arguments: [.text(author)])
            }
        }
        try write("app")
        try write("import")
        let token = try #require(try store.lastToken())
        try store.setCursor("reader", to: nil)
        #expect(try delete("import").heldBackBy == "reader")
        #expect(try store.fetchHistory().map(\.author) == ["app", "import"])
        #expect(try store.removeCursor("reader"))
        #expect(try delete("import").deletedCount == 2)
        #expect(try store.fetchHistory().map(\.author) == ["app"])
        // A second deletion finds nothing more.
        #expect(try delete("import").deletedCount == 0)
        try write("import")
        #expect(try store.fetchHistory(HistoryQuery(after: token)).map(\.author) == ["import"])
        // Including the empty transaction that ended the log.
        #expect(try delete("import").deletedCount == 3)
        try temporary.raw("INSERT INTO item(v) VALUES (2)")
        #expect(try store.fetchHistory(HistoryQuery(after: token)).map(\.changes.count) == [1])
        #expect(try store.audit().isClean)
    }

    @Test func deletionDoesNotCloseAnOpenTransaction() throws {
        let temporary = try store(2)
        let last = try #require(try temporary.store.lastToken())
        try temporary.raw("INSERT INTO item VALUES (50, 1)")
        _ = try temporary.store.deleteHistory(through: last)
        #expect(
            try temporary.store.fetchHistory().map(\.token.transaction) == [last.transaction, last.transaction + 2])
    }

    @Test func p60deletionNamesAStaleCursorAndTheCommandThatRemovesIt() throws {
        let temporary = try store(5)
        let store = temporary.store
        let tokens = try store.fetchHistory().map(\.token)
        try store.setCursor("the old app", to: tokens[1])
        let report = try store.deleteHistory(through: tokens[4])
        #expect(report.heldBackBy == "the old app")
        let command = "martlet history cursors remove \(temporary.path) 'the old app'"
        #expect(report.hint?.contains(command) == true)
        #expect(try store.removeCursor("the old app"))
        let rest = try store.deleteHistory(through: tokens[4])
        #expect(rest.deletedThrough > tokens[1] && rest.heldBackBy == nil && rest.hint == nil)
    }

    @Test func p60removingThePublishersCursorFails() throws {
        let temporary = try store(5)
        let store = temporary.store
        try store.writeOwnTables { try Cursors.set($0, Cursors.publisher, 0) }
        let error = #expect(throws: StoreError.self) { try store.removeCursor("martlet.publisher") }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("not published yet") == false)
        #expect(error?.hint.contains("Run an agent") == true)
        let last = try #require(try store.lastToken())
        let report = try store.deleteHistory(through: last)
        #expect(report.heldBackBy == "martlet.publisher" && report.deletedCount == 0)
        #expect(report.hint?.contains("cursors remove") == false)
    }

    /// History that is to be published or exported would be deleted.
    @Test(arguments: ["martlet.publisher", "martlet.export.shop"])
    func aProgramMovesNoCursorOfMartletItself(name: String) throws {
        let temporary = try store(1)
        let store = temporary.store
        let error = #expect(throws: StoreError.self) { try store.setCursor(name, to: store.lastToken()) }
        #expect(error?.code == .invalidArgument)
        #expect(try store.cursors().isEmpty)
    }

    @Test func p04deletingTheNewestTransactionReusesNoID() throws {
        let temporary = try store(3)
        let store = temporary.store
        let last = try #require(try store.lastToken())
        _ = try store.deleteHistory(through: last)
        _ = try store.deleteHistory(before: .distantFuture)
        #expect(try store.fetchHistory() == [])
        #expect(try store.fetchHistory(HistoryQuery(after: last)) == [])
        #expect(try store.historySize().transactions == 0)
        #expect(try store.recentTransactions(limit: 9) == [])
        #expect(try #require(try store.lastToken()) > last)
        try temporary.raw("INSERT INTO item VALUES (50, 1)")
        let new = try store.fetchHistory(HistoryQuery(after: last))
        #expect(new.count == 1)
        let first = try #require(new.first)
        #expect(first.token > last)
        #expect(first.changes.count == 1 && first.changes.allSatisfy { $0.id > last.transaction })
    }

    @Test func tokensOfDeletedHistoryAndOfOtherStoresAreExpired() throws {
        let temporary = try store(4)
        let store = temporary.store
        let tokens = try store.fetchHistory().map(\.token)
        _ = try store.deleteHistory(through: tokens[2])
        #expect(expired { _ = try store.fetchHistory(HistoryQuery(after: tokens[0])) })
        #expect(expired { _ = try store.fetchHistory(HistoryQuery(after: tokens[1])) })
        #expect(!expired { _ = try store.fetchHistory(HistoryQuery(after: tokens[2])) })
        let other = HistoryToken(store: UUID(), transaction: 100)
        #expect(expired { _ = try store.fetchHistory(HistoryQuery(after: other)) })
        #expect(expired { _ = try store.deleteHistory(through: other) })
        #expect(expired { try store.setCursor("x", to: other) })
    }

    @Test func p33aTokenFromAfterTheBackupIsExpiredInTheRestoredFile() throws {
        let temporary = try store(2)
        let backup = temporary.path + ".backup"
        try temporary.run(.shell, "VACUUM INTO '\(backup)'")
        try temporary.store.write { try $0.execute(sql: "INSERT INTO item(v) VALUES (99)") }
        let token = try #require(try temporary.store.lastToken())
        #expect(try temporary.store.fetchHistory(HistoryQuery(after: token)) == [])
        let restored = try Store(path: backup)
        defer { try? restored.close() }
        #expect(expired { _ = try restored.fetchHistory(HistoryQuery(after: token)) })
        #expect(expired { try restored.setCursor("x", to: token) })
        let last = try #require(try restored.lastToken())
        #expect(try restored.fetchHistory(HistoryQuery(after: last)) == [])
    }

    @Test func deletionRemovesHistoryByAge() throws {
        let temporary = try store(4)
        try temporary.setTimes("id * 1000")
        let all = try temporary.store.fetchHistory()
        _ = try temporary.store.deleteHistory(before: all[2].timestamp)
        #expect(try temporary.store.fetchHistory().map(\.token) == all[2...].map(\.token))
    }

    @Test func aWrongClockDeletesNoRecentHistory() throws {
        let temporary = try store(4)
        let all = try temporary.store.fetchHistory()
        try temporary.setTimes("5", where: "id IN (1, 2, 5, 6)")
        _ = try temporary.store.deleteHistory(before: Date(timeIntervalSince1970: 1000))
        #expect(try temporary.store.fetchHistory().map(\.token) == all[1...].map(\.token))
    }

    @Test func rowsKeepTheirIDsAfterTheirHistoryIsDeleted() throws {
        var request = AttachRequest()
        request.identities = ["declared": ["code"]]
        let temporary = try TemporaryStore(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, v); CREATE TABLE named(name TEXT PRIMARY KEY, v);
            CREATE TABLE declared(id INTEGER PRIMARY KEY, code TEXT UNIQUE, v);
            INSERT INTO item VALUES (100, 0), (101, 0); INSERT INTO named VALUES ('old', 0), ('gone', 0);
            """, attach: request)
        try temporary.raw(
            """
            INSERT INTO item VALUES (1, 1), (2, 1), (3, 1); UPDATE item SET id = 20 WHERE id = 2;
            DELETE FROM item WHERE id = 3;
            UPDATE item SET id = 200 WHERE id = 100; DELETE FROM item WHERE id = 101;
            INSERT INTO named VALUES ('a', 1), ('b', 1); UPDATE named SET name = 'c' WHERE name = 'b';
            DELETE FROM named WHERE name = 'gone';
            INSERT INTO declared VALUES (1, 'x', 1), (2, 'y', 1); UPDATE declared SET code = 'z' WHERE id = 2;
            DELETE FROM declared WHERE id = 1;
            """)
        func names() throws -> [Int64?: StableID?] {
            try temporary.store.closeForeignTransactions()
            try temporary.raw("UPDATE item SET v = v + 1; UPDATE named SET v = v + 1; UPDATE declared SET v = v + 1")
            let changes = try #require(try temporary.store.fetchHistory().last).changes
            #expect(changes.count == 7)
            return Dictionary(
                changes.filter { $0.entity == "item" }.map { ($0.row, $0.identity) }, uniquingKeysWith: { a, _ in a })
        }
        let before = try names()
        #expect(before.count == 3 && before.values.allSatisfy { $0 != nil })
        try temporary.store.write {
            try $0.execute(sql: "INSERT INTO item VALUES (4, 1); DELETE FROM item WHERE id = 4")
        }
        _ = try temporary.store.deleteHistory(before: .distantFuture)
        #expect(try names() == before)
        #expect(try temporary.store.audit().isClean)
    }
}
