import Foundation
import MartletAgent
import MartletSync
import Testing

/// The progress line that a terminal shows while a node catches up.
@Suite struct CatchUpTests {
    private let start = ContinuousClock.now

    private func progress(_ positions: [Int32: Int64], _ ends: [Int32: Int64]) -> ConsumerProgress {
        var progress = ConsumerProgress(startedAt: start)
        progress.positions = positions
        progress.ends = ends
        return progress
    }

    @Test(
        arguments: [
            (0, nil, "[..............................] 0 %  0 of 200 messages, 5/s"),
            (50, nil, "[#######.......................] 25 %  50 of 200 messages, 5/s"),
            (200, nil, "[##############################] 100 %  200 of 200 messages, 5/s"),
            (300, nil, "[##############################] 100 %  300 of 200 messages, 5/s"),
            (50, 54, "[#####.................] 25 %  50 of 200 messages, 5/s"),
            (50, 42, "[##........] 25 %  50 of 200 messages, 5/s"),
            (50, 41, "25 %  50 of 200 messages, 5/s"),
            (50, 10, "25 %  50 o"),
            (50, 0, ""),
        ] as [(Int, Int?, String)]) func theLineFitsIntoItsColumns(done: Int, columns: Int?, line: String)
    {
        #expect(ProgressText.line(done, of: 200, "messages", details: ["", "5/s"], columns: columns) == line)
        if let columns { #expect(line.count <= columns) }
    }

    @Test func aLineWithoutATotalHasNoBar() {
        #expect(ProgressText.line(7, of: 0, "rows") == "7 rows")
    }

    @Test func ratesAndEstimatesHaveSensiblePrecision() {
        #expect([0, 0.25, 9.94, 10, 5120.4].map(ProgressText.rate) == ["0.0/s", "0.3/s", "9.9/s", "10/s", "5120/s"])
        func left(_ remaining: Int, _ perSecond: Double) -> String {
            ProgressText.estimate(remaining: remaining, perSecond: perSecond)
        }
        #expect(left(100, 8) == "about 13 s left")
        #expect(left(59, 1) == "about 59 s left")
        #expect(left(90, 1) == "about 2 min left")
        #expect(left(3600, 1) == "about 1 h 0 min left")
        #expect(left(9000, 1) == "about 2 h 30 min left")
        #expect(left(100, 0) == "" && left(0, 5) == "" && left(1_000_000_000, 0.1) == "")
    }

    @Test func theLineAppearsOnALargeBacklogAndVanishesNearTheEnd() {
        var catchUp = CatchUp()
        func line(_ position: Int64, of end: Int64, after seconds: Int) -> String? {
            catchUp.line(progress([0: position, 1: 10], [0: end, 1: 10]), at: start + .seconds(seconds))
        }
        // A backlog of 1,000 messages shows no line.
        #expect(line(0, of: 1000, after: 0) == nil)
        #expect(line(100, of: 10_100, after: 1) == "[..............................] 0 %  0 of 10000 messages")
        #expect(
            line(2100, of: 10_100, after: 3)
                == "[######........................] 20 %  2000 of 10000 messages, 1000/s, about 8 s left")
        // Other nodes write meanwhile.
        #expect(
            line(4100, of: 20_100, after: 5)
                == "[######........................] 20 %  4000 of 20000 messages, 1000/s, about 16 s left")
        #expect(line(19_900, of: 20_100, after: 6)?.hasPrefix("[#############################.] 99 %") == true)
        #expect(line(20_000, of: 20_100, after: 7) == nil)
        #expect(line(20_000, of: 20_900, after: 8) == nil)
    }

    @Test func theRateCoversTheLastSeconds() {
        var catchUp = CatchUp()
        var last: String?
        for second in 0...60 {
            // 1,000 messages a second, later ten.
            let done = Int64(min(second, 30) * 1000 + max(0, second - 30) * 10)
            last = catchUp.line(progress([0: done], [0: 100_000]), at: start + .seconds(second))
        }
        #expect(last?.contains("30300 of 100000 messages, 10/s") == true)
    }

    @Test func readingAgainFromTheBeginningRestartsTheLine() {
        var catchUp = CatchUp()
        _ = catchUp.line(progress([0: 5000], [0: 10_000]), at: start)
        let again = catchUp.line(progress([0: 0], [0: 10_000]), at: start + .seconds(5))
        #expect(again == "[..............................] 0 %  0 of 10000 messages")
    }

    @Test func noLineAppearsBeforeThePositionIsKnown() {
        var catchUp = CatchUp()
        #expect(catchUp.line(progress([:], [0: 1_000_000]), at: start) == nil)
    }

    @Test func theLineShowsTheSnapshotFirst() {
        var catchUp = CatchUp()
        var loading = progress([:], [0: 1_000_000])
        loading.snapshot = SnapshotProgress(
            id: UUID(), makerName: "a", messages: 10, messageCount: 40, rows: 999, tombstones: 1, isFinished: false)
        #expect(
            catchUp.line(loading, at: start)
                == "[#######.......................] 25 %  10 of 40 messages of a snapshot, 999 rows")
        loading.snapshot?.isFinished = true
        loading.positions = [0: 999_000]
        #expect(catchUp.line(loading, at: start + .seconds(5)) == nil)
    }
}
