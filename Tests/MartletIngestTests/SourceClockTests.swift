import MartletCore
import MartletIngest
import Testing

@Suite struct SourceClockTests {
    private static let open = SourceClock.Bounds(collected: .zero, limit: 1_000_000)

    private func position(_ number: UInt64, log: String = "postgresql") -> SourcePosition {
        SourcePosition(log: log, numbers: [number])
    }

    @Test func aRecordHasItsSourcesTimeAndItsOffset() throws {
        var clock = SourceClock()
        let first = try clock.time(of: 5000, offset: 7, position: position(1), within: Self.open).stamp
        #expect(first == HybridTime(rawValue: 5000 << 16 | 7))
        let second = try clock.time(of: 5000, offset: 8, position: position(2), within: Self.open).stamp
        #expect(second == HybridTime(rawValue: 5000 << 16 | 8))
        #expect(clock.last == second)
    }

    @Test func aRecordThatComesAgainHasTheSameMillisecond() throws {
        var clock = SourceClock()
        _ = try clock.time(of: 5000, offset: 7, position: position(1), within: Self.open)
        let last = try clock.time(of: 6000, offset: 8, position: position(2), within: Self.open).stamp
        let again = try clock.time(of: 5000, offset: 9, position: position(1), within: Self.open).stamp
        #expect(again.milliseconds == 5000)
        #expect(clock.last == last && clock.position == position(2))
    }

    @Test func aNewRecordIsLaterThanThoseBeforeItWhateverTheSourcesClock() throws {
        var clock = SourceClock()
        let first = try clock.time(of: 5000, offset: 7, position: position(1), within: Self.open).stamp
        let second = try clock.time(of: 4000, offset: 8, position: position(2), within: Self.open).stamp
        #expect(second == first.next)
        // The counter begins again.
        let third = try clock.time(of: 5000, offset: 0x10000, position: position(3), within: Self.open).stamp
        #expect(third == first.next.next)
    }

    @Test func withoutPositionsTheOrderOfRecordsCounts() throws {
        var clock = SourceClock()
        let first = try clock.time(of: 5000, offset: 7, position: nil, within: Self.open).stamp
        let second = try clock.time(of: 4000, offset: 8, position: nil, within: Self.open).stamp
        #expect(second == first.next)
    }

    @Test func aRecordWithoutATimeIsJustAfterTheOneBeforeIt() throws {
        var clock = SourceClock()
        let first = try clock.time(of: 5000, offset: 7, position: position(1), within: Self.open).stamp
        let second = try clock.time(of: nil, offset: 8, position: nil, within: Self.open).stamp
        #expect(second == first.next)
        let third = try clock.time(of: 5000, offset: 9, position: position(2), within: Self.open).stamp
        #expect(third == HybridTime(rawValue: 5000 << 16 | 9))
    }

    @Test func positionsOfAnotherLogAreFollowedFromThenOn() throws {
        var clock = SourceClock()
        let first = try clock.time(of: 5000, offset: 1, position: position(9), within: Self.open).stamp
        let other = try clock.time(of: 4000, offset: 2, position: position(1, log: "new"), within: Self.open).stamp
        #expect(other.milliseconds == 4000)
        let next = try clock.time(of: 4000, offset: 3, position: position(2, log: "new"), within: Self.open).stamp
        #expect(next == first.next)
    }

    /// PostgreSQL was restored into a new cluster, or the binary log was reset: its name stays.
    @Test func p239PositionsOfALogThatBeginsAgainAreFollowedFromThenOn() throws {
        var clock = SourceClock()
        _ = try clock.time(of: 5000, offset: 0xfffe, position: position(1000), within: Self.open)
        let first = try clock.time(of: 6000, offset: 0xffff, position: position(1), within: Self.open).stamp
        #expect(clock.position == position(1))
        // The counter begins again.
        let second = try clock.time(of: 6000, offset: 0x10000, position: position(2), within: Self.open).stamp
        #expect(second == first.next)
        let third = try clock.time(of: 4000, offset: 0x10001, position: position(3), within: Self.open).stamp
        #expect(third == second.next)
    }

    @Test func aTimeThatIsTooFarAheadIsCutAndTheOrderStays() throws {
        let bounds = SourceClock.Bounds(collected: .zero, limit: 10_000)
        var clock = SourceClock()
        let first = try clock.time(of: 99_000, offset: 1, position: position(1), within: bounds).stamp
        #expect(first == HybridTime(rawValue: 10_000 << 16 | 1))
        let second = try clock.time(of: 99_000, offset: 2, position: position(2), within: bounds).stamp
        #expect(second == HybridTime(rawValue: 10_000 << 16 | 2))
        // The clock of this machine was set back.
        let before = clock
        let error = #expect(throws: IngestError.self) {
            _ = try clock.time(
                of: 99_000, offset: 3, position: position(3), within: .init(collected: .zero, limit: 9000))
        }
        #expect(error?.code == .clock)
        #expect(clock == before)
    }

    @Test func aTimeBeforeCollectedTombstonesIsLaterThanThoseAndTheOrderStays() throws {
        let collected = HybridTime(milliseconds: 8000)
        let bounds = SourceClock.Bounds(collected: collected, limit: 1_000_000)
        for number in [nil, position(1)] {
            var clock = SourceClock()
            let first = try clock.time(of: 5000, offset: 1, position: number, within: bounds)
            let second = try clock.time(of: 5000, offset: 2, position: number, within: bounds)
            #expect(first == SourceClock.Time(collected.next, isLate: true))
            #expect(second.stamp == collected.next.next)
            let third = try clock.time(of: 9000, offset: 3, position: position(3), within: bounds)
            #expect(third == SourceClock.Time(HybridTime(rawValue: 9000 << 16 | 3)))
        }
    }
}
