import Foundation
import MartletStore
import MartletTestSupport
import Testing

/// The clock that tests push forward instead of waiting for the real one.
@Suite struct SQLiteClockTests {
    private let temporary: TemporaryStore

    init() throws { temporary = try TemporaryStore("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)") }

    /// The times of the captured changes, in milliseconds since 1970.
    private func times() throws -> [Int64] {
        try temporary.store.fetchHistory().flatMap(\.changes).map { change in
            Int64((change.timestamp.timeIntervalSince1970 * 1000).rounded())
        }
    }

    /// The clock is ahead of the real one here, by most of the milliseconds that it was pushed.
    @Test func triggersReadTheClock() throws {
        for _ in 0..<50 { SQLiteClock.advance() }
        let before = SQLiteClock.milliseconds
        try temporary.raw("INSERT INTO note VALUES (1, 'one')")
        let after = SQLiteClock.milliseconds
        let time = try #require(try times().first)
        #expect((before...after).contains(time))
    }

    @Test func whatIsReadAfterAnAdvanceIsLater() {
        for _ in 0..<20 {
            let before = SQLiteClock.milliseconds
            SQLiteClock.advance()
            #expect(SQLiteClock.milliseconds > before)
        }
    }

    @Test func aWrongClockIsWrongForItsProgramAlone() throws {
        try SQLiteClock.with(ahead: .seconds(3600)) { try temporary.raw("INSERT INTO note VALUES (1, 'one')") }
        let between = SQLiteClock.milliseconds
        try temporary.raw("INSERT INTO note VALUES (2, 'two')")
        let times = try times()
        try #require(times.count == 2)
        #expect(times[0] <= between + 3_600_000 && times[0] > between + 3_500_000)
        #expect(times[1] >= between && times[1] < between + 3_500_000)
    }
}
