import Foundation
import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// What a store says of its history.
@Suite struct HistoryReportTests {
    private let temporary: TemporaryStore
    private var store: Store { temporary.store }

    init() throws {
        temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, v)")
        for index in 0..<400 {
            try temporary.store.write { try $0.execute(sql: "INSERT INTO item(v) VALUES (\(index))") }
        }
    }

    private func keep(_ bounds: HistoryBounds) throws { try store.writeOwnTables { try bounds.record($0) } }

    @Test func aReportTellsSizeAndAge() throws {
        let report = try store.historyReport()
        #expect(try report.size == store.historySize() && report.size.transactions == 400)
        #expect(try report.oldest == store.fetchHistory().first?.timestamp)
        #expect(report.bounds == nil && report.held == nil)
    }

    @Test func aReportNamesTheCursorThatKeepsMoreThanTheBounds() throws {
        let tokens = try store.fetchHistory().map(\.token)
        try store.setCursor("reader", to: tokens[99])
        try store.setCursor("other", to: tokens[299])
        try keep(HistoryBounds(sizeBytes: 1))
        let report = try store.historyReport()
        let held = try #require(report.held)
        #expect(held.cursor == "reader" && held.hint.contains("cursors remove"))
        // Of 400 transactions, about 300 follow the cursor.
        let share = Double(held.bytes) / Double(report.size.bytes)
        #expect((0.70...0.76).contains(share))
        try store.removeCursor("reader")
        #expect(try store.historyReport().held?.cursor == "other")
        // What is within the bounds is not held by anybody.
        try keep(HistoryBounds(age: .seconds(86_400), sizeBytes: 1 << 30))
        #expect(try store.historyReport().held == nil)
    }

    /// Whatever the file says, it is no reason to crash.
    @Test func damagedBoundsAndArrivalsAreHarmless() throws {
        let looks = #"{"looks":[{"time":\#(Int64.min),"newest":\#(Int64.max)},{"time":\#(Int64.max),"newest":0}]}"#
        try store.writeOwnTables { db in
            try Meta.set(db, MetaKey.historyAge, Int64.max)
            try Meta.set(db, MetaKey.historyBytes, Int64.max)
            try Meta.set(db, MetaKey.historyArrivals, looks)
        }
        #expect(try store.historyReport().held == nil)
        #expect(try store.historyReport().bounds?.sizeBytes == .max)
        let arrivals = try store.writeOwnTables { try HistoryArrivals.look($0, at: 1000, age: 10) }
        #expect(arrivals.last(before: 2000) == 0)
    }

    @Test func aReportJudgesTheAgeByTheGivenTime() throws {
        try store.setCursor("reader", to: nil)
        try keep(HistoryBounds(age: .seconds(86_400)))
        #expect(try store.historyReport().held == nil)
        let later = try store.historyReport(at: Date(timeIntervalSinceNow: 2 * 86_400))
        #expect(later.held?.cursor == "reader")
    }
}
