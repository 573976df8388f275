import MartletCore
import Testing

@Suite struct HybridClockTests {
    @Test func theClockAdvancesWhileTheWallClockStandsStillOrGoesBack() {
        var clock = HybridClock()
        let readings = [1000, 1000, 900, 1001, 0, 1001].map { clock.tick(at: $0) }
        #expect(readings == readings.sorted() && Set(readings).count == readings.count)
        #expect(readings[0].milliseconds == 1000 && readings[3].milliseconds == 1001)
    }

    @Test func theNextReadingIsAfterAnObservedTime() {
        var clock = HybridClock(last: HybridTime(milliseconds: 5))
        let remote = HybridTime(milliseconds: 9000)
        clock.observe(remote)
        #expect(clock.tick(at: 10) == remote.next)
        clock.observe(HybridTime(milliseconds: 1))
        #expect(clock.last == remote.next)
    }

    @Test func aFullCounterOverflowsIntoTheMilliseconds() {
        var clock = HybridClock(last: HybridTime(rawValue: 5 << 16 | 0xffff))
        #expect(clock.tick(at: 5) == HybridTime(rawValue: 6 << 16))
    }

    @Test func timesOutOfRangeAreClamped() {
        #expect(HybridTime(milliseconds: -5) == .zero)
        #expect(HybridTime(milliseconds: .max).milliseconds == 1 << 47 - 1)
    }
}
