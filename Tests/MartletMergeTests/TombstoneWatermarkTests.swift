import MartletCore
import MartletMerge
import Testing

/// The watermark up to which tombstones may be garbage-collected.
@Suite struct TombstoneWatermarkTests {
    private let day: Int64 = 86_400_000
    private var now: Int64 { 1000 * day }

    private func member(heard: Int64, promised: Int64?, isReceived: Bool = true) -> TombstoneWatermark.Member {
        TombstoneWatermark.Member(
            heard: heard, watermark: promised.map { HybridTime(milliseconds: $0) }, isReceived: isReceived)
    }

    private func watermark(_ members: [TombstoneWatermark.Member]) -> HybridTime? {
        TombstoneWatermark.compute(members, horizon: 32 * day, now: now)
    }

    @Test func noTombstoneIsCollectedBeforeTheHorizon() throws {
        let alone = try #require(watermark([]))
        #expect(alone.milliseconds <= now - 32 * day)
        #expect(alone.milliseconds > now - 34 * day)
        #expect(TombstoneWatermark.compute([], horizon: 32 * day, now: 32 * day) == nil)
    }

    @Test func nodesComputeTheSameWatermarkAtAboutTheSameTime() {
        #expect(TombstoneWatermark.compute([], horizon: 32 * day, now: now + 1) == watermark([]))
        #expect(TombstoneWatermark.compute([], horizon: 32 * day, now: now + 2 * day) != watermark([]))
    }

    @Test func theCutNeedsTheWatermarkOfEveryMember() throws {
        let alone = try #require(watermark([]))
        #expect(watermark([member(heard: now, promised: now)]) == alone)
        #expect(watermark([member(heard: now, promised: alone.milliseconds)]) == alone)
        #expect(watermark([member(heard: now, promised: alone.milliseconds - 1)]) == nil)
        #expect(watermark([member(heard: now, promised: nil)]) == nil)
        #expect(watermark([member(heard: now, promised: now), member(heard: now, promised: nil)]) == nil)
    }

    @Test func theCutNeedsAllChangesFromBeforeTheWatermark() {
        #expect(watermark([member(heard: now, promised: now, isReceived: false)]) == nil)
    }

    @Test func aMemberSilentForTheHorizonDoesNotHoldBackTheWatermark() {
        #expect(watermark([member(heard: now - 32 * day - 1, promised: nil, isReceived: false)]) == watermark([]))
        #expect(watermark([member(heard: now - 32 * day, promised: nil)]) == nil)
    }
}
