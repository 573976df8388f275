import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// A reader that follows the history with a cursor.
@Suite struct HistoryTailTests {
    private let temporary: TemporaryStore
    private var store: Store { temporary.store }

    init() throws {
        temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, v); CREATE TABLE other(k TEXT PRIMARY KEY)")
    }

    @discardableResult
    private func write(_ values: ClosedRange<Int>, author: String? = nil) throws -> [HistoryToken] {
        try values.map { value in
            try #require(
                try store.writeTransaction(author: author) {
                    try $0.execute(sql: "INSERT INTO item(id, v) VALUES (\(value), 'v')")
                }.token)
        }
    }

    private func tail(
        _ query: HistoryQuery = .init(), start: HistoryTail.Start = .oldest, acknowledges: Bool = false
    ) throws -> HistoryTail {
        try HistoryTail(store, query, cursor: "reader", start: start, acknowledges: acknowledges)
    }

    /// Everything that the reader gets until there is no more.
    private func readAll(_ tail: HistoryTail) throws -> [Int64] {
        var found: [Int64] = []
        while try tail.read({ found += $0.changes.compactMap(\.row) }) {}
        return found
    }

    private var position: HistoryToken? { get throws { try store.cursors().first { $0.name == "reader" }?.token } }

    @Test func aReaderContinuesAtItsCursor() throws {
        let tokens = try write(1...5)
        #expect(try readAll(tail()) == [1, 2, 3, 4, 5])
        #expect(try position == tokens[4])
        try write(6...7)
        #expect(try readAll(tail()) == [6, 7])
        #expect(try readAll(tail()) == [])
    }

    /// As when a backup is restored by renaming it over the store.
    @Test func aReaderEndsWhenTheStoreIsReplaced() throws {
        try write(1...2)
        let tail = try tail()
        #expect(try readAll(tail) == [1, 2])
        try temporary.moveAway(replacing: true)
        let error = #expect(throws: StoreError.self) { try readAll(tail) }
        #expect(error?.code == .moved)
    }

    @Test func aNewReaderMayBeginWithWhatIsCommittedFromNowOn() throws {
        try write(1...3)
        let tail = try tail(start: .newest)
        #expect(try readAll(tail) == [])
        try write(4...4)
        #expect(try readAll(tail) == [4])
    }

    @Test func aTokenMovesTheCursor() throws {
        let tokens = try write(1...5)
        #expect(try readAll(tail()).count == 5)
        #expect(try readAll(tail(HistoryQuery(after: tokens[1]))) == [3, 4, 5])
        #expect(try position == tokens[4])
    }

    @Test func aPageIsShortAndATransactionIsWhole() throws {
        try write(1...10)
        _ = try store.writeTransaction { db in
            for value in 11...100 { try db.execute(sql: "INSERT INTO item(id) VALUES (\(value))") }
        }
        try write(101...103)
        var (place, pages) = (store.beginning, [Int]())
        var page: HistoryPage
        repeat {
            page = try store.historyPage(HistoryQuery(), after: place, rowCount: 8)
            place = page.end
            pages.append(page.transactions.reduce(0) { $0 + $1.changes.count })
        } while page.hasMore
        #expect(pages.reduce(0, +) == 103)
        #expect(pages.contains(90) && pages.filter { $0 > 8 } == [90])
    }

    /// 1,000 rows with large values would not fit into the memory of a small device.
    @Test func largeValuesMakePagesShorter() throws {
        for value in 1...10 {
            try store.write { try $0.execute(sql: "INSERT INTO item VALUES (\(value), zeroblob(1000))") }
        }
        var (place, pages) = (store.beginning, [[Int64?]]())
        var page: HistoryPage
        repeat {
            page = try store.historyPage(HistoryQuery(), after: place, byteCount: 2_500)
            place = page.end
            pages.append(page.transactions.flatMap(\.changes).map(\.row))
        } while page.hasMore
        #expect(pages == [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
    }

    @Test func transactionsThatDoNotMatchLetTheCursorMove() throws {
        try write(1...3, author: "somebody")
        let last = try write(4...6, author: "somebody else")[2]
        #expect(try readAll(tail(HistoryQuery(author: .equal("somebody")))) == [1, 2, 3])
        #expect(try position == last)
        var query = HistoryQuery()
        query.entities = ["other"]
        let newest = try write(7...7)[0]
        #expect(try readAll(tail(query)) == [])
        #expect(try position == newest)
    }

    @Test func whatWasNotHandedOutComesAgain() throws {
        struct Full: Error {}
        let tokens = try write(1...3)
        let first = try tail()
        var count = 0
        #expect(throws: Full.self) {
            _ = try first.read { _ in
                count += 1
                if count == 2 { throw Full() }
            }
        }
        #expect(try position == store.beginning)
        #expect(try readAll(tail()) == [1, 2, 3])
        #expect(try position == tokens[2])
    }

    @Test func theCursorMovesOnlyToWhatTheReaderAcknowledged() throws {
        let tokens = try write(1...3)
        let first = try tail(acknowledges: true)
        #expect(try readAll(first) == [1, 2, 3])
        #expect(try position == store.beginning)
        try first.acknowledge(tokens[1])
        #expect(try position == tokens[1] && !first.isSettled)
        // The reader ends here, and another one takes its place.
        let second = try tail(acknowledges: true)
        #expect(try readAll(second) == [3])
        try second.acknowledge(tokens[2])
        #expect(second.isSettled)
        #expect(try position == tokens[2])
        // A late acknowledgement of the first one doesn't move the cursor back.
        #expect(throws: StoreError.self) { try first.acknowledge(tokens[2]) }
        #expect(try position == tokens[2])
    }

    /// Otherwise the command would end, with success, while another thread still moves the cursor.
    @Test func nothingIsSettledBeforeTheCursorHasMoved() throws {
        let tokens = try write(1...2)
        let tail = try tail(acknowledges: true)
        #expect(try readAll(tail) == [1, 2])
        try store.removeCursor("reader")
        #expect(throws: StoreError.self) { try tail.acknowledge(tokens[1]) }
        #expect(!tail.isSettled)
    }

    @Test func historyStaysFromTheMomentThatAReaderBegins() throws {
        let tokens = try write(1...5)
        let tail = try tail()
        let report = try store.deleteHistory(through: tokens[4])
        #expect(report.heldBackBy == "reader" && report.deletedCount == 0)
        #expect(try readAll(tail) == [1, 2, 3, 4, 5])
        #expect(try store.deleteHistory(through: tokens[3]).heldBackBy == nil)
    }

    @Test func aReaderWhoseCursorWasRemovedEnds() throws {
        try write(1...2)
        let tail = try tail()
        #expect(try readAll(tail) == [1, 2])
        #expect(try store.removeCursor("reader"))
        try write(3...3)
        let error = #expect(throws: StoreError.self) { try readAll(tail) }
        #expect(error?.code == .invalidArgument)
        // It did not come back by itself.
        #expect(try position == nil)
    }

    @Test func aReaderThatComesBackToDeletedHistoryIsToldSo() throws {
        let tokens = try write(1...5)
        #expect(try readAll(tail()).count == 5)
        try store.removeCursor("reader")
        try write(6...9)
        _ = try store.deleteHistory(through: tokens[2])
        let error = #expect(throws: StoreError.self) { try tail() }
        #expect(error?.code == .historyTokenExpired)
        // It has no position until it has loaded the rows.
        #expect(try position == nil)
        let newest = try HistoryTail.newest(in: store)
        #expect(try readAll(tail(HistoryQuery(after: newest))) == [])
        #expect(try position == newest)
        // A position that has expired does not replace one that has not.
        #expect(throws: StoreError.self) { try tail(HistoryQuery(after: tokens[0])) }
        #expect(try position == newest)
    }

    @Test(arguments: ["", "martlet.publisher", "martlet.x", "a\u{7}b", String(repeating: "x", count: 201)])
    func aReaderNeedsANameOfItsOwn(name: String) throws {
        let error = #expect(throws: StoreError.self) {
            try HistoryTail(store, HistoryQuery(), cursor: name, start: .oldest)
        }
        #expect(error?.code == .invalidArgument)
        #expect(try store.cursors().isEmpty)
    }

    @Test func anUnknownTableIsRefusedThoughThereIsNothingToRead() throws {
        var query = HistoryQuery()
        query.entities = ["nonsense"]
        let tail = try tail(query)
        #expect(throws: StoreError.self) { try readAll(tail) }
    }

    @Test func aReportTellsWhatEachCursorHoldsBack() throws {
        let tokens = try write(1...400)
        try store.setCursor("fast", to: tokens[399])
        try store.setCursor("slow", to: tokens[99])
        let reports = try store.cursorReports()
        #expect(reports.map(\.cursor.name) == ["slow", "fast"])
        #expect(reports.map(\.transactions) == [300, 0])
        let share = Double(reports[0].bytes) / Double(try store.historySize().bytes)
        #expect((0.70...0.80).contains(share) && reports[1].bytes == 0)
    }
}
