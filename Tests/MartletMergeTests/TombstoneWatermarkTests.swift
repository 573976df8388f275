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

    private func cut(_ members: [TombstoneWatermark.Member]) -> HybridTime? {
        TombstoneWatermark.cut(members, horizon: 32 * day, now: now)
    }

    @Test func noTombstoneIsCollectedBeforeTheHorizon() throws {
        let alone = try #require(cut([]))
        #expect(alone.milliseconds <= now - 32 * day)
        #expect(alone.milliseconds > now - 34 * day)
        #expect(TombstoneWatermark.cut([], horizon: 32 * day, now: 32 * day) == nil)
    }

    @Test func nodesComputeTheSameWatermarkAtAboutTheSameTime() {
        #expect(TombstoneWatermark.cut([], horizon: 32 * day, now: now + 1) == cut([]))
        #expect(TombstoneWatermark.cut([], horizon: 32 * day, now: now + 2 * day) != cut([]))
    }

    @Test func theCutNeedsTheWatermarkOfEveryMember() throws {
        let alone = try #require(cut([]))
        #expect(cut([member(heard: now, promised: now)]) == alone)
        #expect(cut([member(heard: now, promised: alone.milliseconds)]) == alone)
        #expect(cut([member(heard: now, promised: alone.milliseconds - 1)]) == nil)
        #expect(cut([member(heard: now, promised: nil)]) == nil)
        #expect(cut([member(heard: now, promised: now), member(heard: now, promised: nil)]) == nil)
    }

    @Test func theCutNeedsAllChangesFromBeforeTheWatermark() {
        #expect(cut([member(heard: now, promised: now, isReceived: false)]) == nil)
    }

    @Test func aMemberSilentForTheHorizonDoesNotHoldBackTheWatermark() {
        #expect(cut([member(heard: now - 32 * day - 1, promised: nil, isReceived: false)]) == cut([]))
        #expect(cut([member(heard: now - 32 * day, promised: nil)]) == nil)
    }
}
