import MartletAgent
import MartletStore
import Testing

/// What an agent warns of, and when it deletes history, without a store.
@Suite struct HousekeepingTests {
    private let start = ContinuousClock.Instant.now

    @Test func eachReusedNameIsNewsOnce() {
        let table = ReusedName(table: "note", column: nil, formerOwner: "memo")
        let column = ReusedName(table: "note", column: "text", formerOwner: "body")
        var housekeeping = Housekeeping()
        #expect(housekeeping.news(reused: [table]) == [table])
        #expect(housekeeping.news(reused: [table]).isEmpty)
        #expect(housekeeping.news(reused: [table, column]) == [column])
        // Its schema was corrected, and changed again.
        #expect(housekeeping.news(reused: [column]).isEmpty)
        #expect(housekeeping.news(reused: [column, table]) == [table])
    }

    @Test func aLostTableIsNewsOnceUntilItIsBack() {
        var housekeeping = Housekeeping()
        #expect(housekeeping.news(lost: ["note"]) == ["note"])
        #expect(housekeeping.news(lost: ["note", "trip"]) == ["trip"])
        #expect(housekeeping.news(lost: ["trip"]).isEmpty)
        #expect(housekeeping.news(lost: ["note", "trip"]) == ["note"])
    }

    @Test func historyIsDeletedAtTheStartAndThenOnceAMinute() {
        var housekeeping = Housekeeping()
        let due = (0...30).filter { housekeeping.takeRetention(at: start + Housekeeping.interval * $0) }
        #expect(due == [0, 12, 24])
    }

    @Test func pagesThatStayFreeAreGivenBackExceptForAnEighthOfTheFile() {
        func space(_ pages: Int64, free: Int64, isShrinkable: Bool = true) -> FileSpace {
            FileSpace(pageBytes: 4096, pageCount: pages, freePageCount: free, isShrinkable: isShrinkable)
        }
        var housekeeping = Housekeeping()
        // Whether they stay free is not known yet.
        #expect(housekeeping.takeFreePages(space(8000, free: 4000)) == 0)
        #expect(housekeeping.takeFreePages(space(8000, free: 5000)) == 4000 - 1000)
        #expect(housekeeping.takeFreePages(space(5000, free: 2000)) == 2000 - 625)
        // A program has used them meanwhile.
        #expect(housekeeping.takeFreePages(space(5000, free: 100)) == 0)
        #expect(housekeeping.takeFreePages(space(8000, free: 4000)) == 0)
        // The rest follows later.
        _ = housekeeping.takeFreePages(space(900_000, free: 800_000))
        #expect(housekeeping.takeFreePages(space(900_000, free: 800_000)) == 65_536)
        // A quarter of the file, and 1 MiB, are not worth the writes.
        var quarter = Housekeeping()
        #expect((0..<3).allSatisfy { _ in quarter.takeFreePages(space(8000, free: 2000)) == 0 })
        var small = Housekeeping()
        #expect((0..<3).allSatisfy { _ in small.takeFreePages(space(300, free: 256)) == 0 })
        var other = Housekeeping()
        #expect((0..<3).allSatisfy { _ in other.takeFreePages(space(8000, free: 7000, isShrinkable: false)) == 0 })
    }

    @Test func aFileThatIsGivenBackComesToRest() {
        var housekeeping = Housekeeping()
        var space = FileSpace(pageBytes: 4096, pageCount: 10_000, freePageCount: 9000, isShrinkable: true)
        var steps: [Int64] = []
        for _ in 0..<8 {
            let count = housekeeping.takeFreePages(space)
            space.pageCount -= count
            space.freePageCount -= count
            if count > 0 { steps.append(count) }
        }
        #expect(steps == [7750, 969])
        #expect(space.pageCount == 1281 && space.freePageCount == 281)
    }
}
