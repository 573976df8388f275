import Foundation
import MartletAgent
import MartletStore
import Testing

/// How what a history and a file take is judged and shown.
@Suite struct SpaceDoctorTests {
    private func history(
        held bytes: Int64?, bounds: HistoryBounds = HistoryBounds(sizeBytes: 256 << 20)
    ) -> HistoryReport {
        HistoryReport(
            size: HistorySize(bytes: 400 << 20, transactions: 3), oldest: Date(timeIntervalSince1970: 0),
            bounds: bounds, held: bytes.map { .init(cursor: "old app", bytes: $0, hint: "Remove it.") })
    }

    @Test func aCursorThatKeepsMuchMoreThanTheBoundsCausesAWarning() {
        #expect(SpaceDoctor.judge(history(held: nil)).level == .ok)
        #expect(SpaceDoctor.judge(history(held: 64 << 20)).level == .ok)
        let finding = SpaceDoctor.judge(history(held: 100 << 20))
        #expect(finding.level == .warning && finding.remedy == "Remove it.")
        #expect(finding.message.contains("old app keeps 100.0 MiB of the history's 400.0 MiB"))
        #expect(SpaceDoctor.judge(history(held: 100 << 20, bounds: HistoryBounds(sizeBytes: 1 << 30))).level == .ok)
    }

    @Test func aFileThatIsMostlyFreeCausesAWarning() {
        func level(_ pages: Int64, free: Int64, isShrinkable: Bool = false) -> Finding.Level {
            let file = FileSpace(
                pageBytes: 4096, pageCount: pages, freePageCount: free, isShrinkable: isShrinkable)
            return SpaceDoctor.judge(file, path: "x").level
        }
        #expect(level(100, free: 90) == .ok)
        #expect(level(100_000, free: 40_000) == .ok)
        #expect(level(100_000, free: 60_000) == .warning)
        #expect(level(100_000, free: 60_000, isShrinkable: true) == .ok)
    }

    @Test func statusShowsBoundsAndSizes() {
        let file = FileSpace(pageBytes: 4096, pageCount: 2560, freePageCount: 256)
        let bounds = HistoryBounds(age: .seconds(30 * 86_400), sizeBytes: 256 << 20)
        #expect(
            SizeText.lines(history(held: 100 << 20, bounds: bounds), file, time: { "\(Int($0.timeIntervalSince1970))" })
                == [
                    "history     400.0 MiB, 3 transactions since 0; kept for 30 days, up to 256.0 MiB",
                    "held        100.0 MiB of history beyond that, by the cursor old app",
                    "file        10.0 MiB, 1.0 MiB of it free",
                ])
        let shrinkable = FileSpace(pageBytes: 4096, pageCount: 2, freePageCount: 0, isShrinkable: true)
        #expect(SizeText.space(shrinkable) == "8.0 KiB, 0 bytes of it free; the agent gives back what stays free")
        #expect(SizeText.bounds(HistoryBounds()) == "kept without bounds")
        #expect(SizeText.bounds(HistoryBounds(age: .seconds(3600))) == "kept for 1 hour")
        #expect(SizeText.bounds(HistoryBounds(age: .seconds(90))) == "kept for 90 seconds")
        let longest = Duration.seconds(Int64.max)
        #expect(SizeText.bounds(HistoryBounds(age: longest)) == "kept for \(Int64.max) seconds")
        #expect(SizeText.bytes(1023) == "1023 bytes" && SizeText.bytes(1024) == "1.0 KiB")
    }
}
