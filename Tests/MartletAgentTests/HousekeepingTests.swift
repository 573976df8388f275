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
}
