import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite struct MergePitfallTests {
    let lab: Lab
    let a: TestNode
    let b: TestNode

    init() throws {
        lab = try Lab(partitions: 2)
        a = try lab.node("a")
        b = try lab.node("b")
    }

    @Test func p17ARowThatIsDeletedAndInsertedAgainExists() throws {
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a, b])
        try a.write("DELETE FROM setting")
        try a.write("INSERT INTO setting VALUES ('k', 2)")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value=2")
        try b.write("DELETE FROM setting; INSERT INTO setting VALUES ('k', 3)")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value=3")
    }

    @Test func p18ARowThatTwoNodesDeleteIsGoneOnTheThird() throws {
        let c = try lab.node("c")
        try a.write("INSERT INTO setting VALUES ('k', 1); INSERT INTO trip(name) VALUES ('x')")
        try exchange([a, b, c])
        try a.write("DELETE FROM setting; DELETE FROM trip")
        try b.write("DELETE FROM trip; DELETE FROM setting")
        try exchange([a, b, c])
        try expectAll([a, b, c], are: "nothing")
    }

    /// Tombstones are never collected: they are stored apart from the history, and outlive it.
    @Test func p22ANodeThatWasAwayBringsNoDeletedRowBack() throws {
        try a.write("INSERT INTO setting VALUES ('k', 1), ('l', 1)")
        try exchange([a, b])
        // This happens while b is offline.
        try a.write("DELETE FROM setting")
        try a.publish()
        _ = try a.store.deleteHistory(before: .distantFuture)
        _ = try a.engine.trimOutbox()
        try a.restart()
        try b.write("UPDATE setting SET value = 2 WHERE key = 'k'")
        try exchange([a, b])
        try expectBoth(a, b, are: "nothing")
        // An insert from before the delete that arrives late or again brings nothing back either.
        let late = try lab.node("late")
        try late.consume()
        try late.publish()
        try a.receive(lab.messages())
        try expectBoth(a, late, are: "nothing")
        // An insert from after the delete does.
        try b.write("INSERT INTO setting VALUES ('k', 3)")
        try exchange([a, b, late])
        try expectAll([a, b, late], are: "setting key='k' value=3")
    }

    @Test func p20AConcurrentEditIsDecidedAlikeInEveryOrder() throws {
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a, b])
        let before = try lab.messages().count
        try a.write("UPDATE setting SET value = 'a'")
        try b.write("UPDATE setting SET value = 'b'")
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value='b'")
        let all = try lab.messages()
        #expect(all.count == before + 2)
        let c = try lab.node("c")
        let d = try lab.node("d")
        try c.receive(all)
        try d.receive(all.reversed())
        try expectBoth(c, d, are: "setting key='k' value='b'")
    }

    @Test(arguments: [-60_000, 60_000] as [Int64])
    func theBrokersClockRevealsAWrongLocalClock(_ ahead: Int64) throws {
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        var message = try #require(lab.messages().first)
        message.timestamp = SQLiteClock.milliseconds - ahead
        message.isBrokerTimestamp = false
        #expect(try a.engine.apply([message], topic: "other").clockOffset == nil)
        message.isBrokerTimestamp = true
        let report = try a.engine.apply([message], topic: "t")
        let offset = try #require(report.clockOffset)
        #expect(
            offset.contains(ahead) && abs(offset.lowerBound - ahead) < 30_000 && abs(offset.upperBound - ahead) < 30_000
        )
        #expect(try SyncStatus.read(a.store).clockOffset == offset)
    }

    /// Its hybrid clock follows that of another node.
    @Test func aNodeThatReadsBackLateDoesNotTakeTheClockOfAnotherNodeForItsOwn() throws {
        try b.foreignWrite("INSERT INTO setting VALUES ('k', 1)", ahead: .seconds(200))
        try b.publish()
        try a.consume()
        try a.write("INSERT INTO setting VALUES ('l', 2)")
        try a.publish()
        a.clock.pass(.seconds(300))
        try a.consume()
        let offset = try #require(SyncStatus.read(a.store).clockOffset)
        #expect(offset.lowerBound < 100_000 && offset.upperBound > 200_000)
    }

    @Test func p21AClockFromTheFutureWaitsAndMovesNoClock() throws {
        let clock = TestClock(SQLiteClock.milliseconds - 600_000)
        let c = try lab.node("c", clock: clock)
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        let report = try c.consume()
        #expect(report.deferred == 1)
        try expectState(c, is: "pending futureClock")
        #expect(try c.pendingMessages().map(\.reason) == [.futureClock])
        #expect(try c.hybridTime() == .zero)
        try c.restart()
        clock.milliseconds += 299_000
        try c.consume()
        try expectState(c, is: "pending futureClock")
        clock.milliseconds += 60_000
        try c.consume()
        try expectBoth(a, c, are: "setting key='k' value=1")
        // The future clock counts now, and still does after a restart.
        try c.restart()
        #expect(try c.hybridTime() > .zero)
    }

    @Test func p23ADeleteCountsEvenIfItsContentWasSeenBefore() throws {
        for _ in 0..<3 {
            try a.write("INSERT INTO setting VALUES ('k', 1)")
            try exchange([a, b])
            try expectBoth(a, b, are: "setting key='k' value=1")
            try a.write("DELETE FROM setting")
            try exchange([a, b])
            try expectBoth(a, b, are: "nothing")
        }
        #expect(try a.outboxCount() == 6)
    }

    @Test func p24AWriteThatIsStampedLateDoesNotBeatNewerEdits() throws {
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a, b])
        try b.foreignWrite("UPDATE setting SET value = 'early'")
        try a.write("UPDATE setting SET value = 'late'")
        try a.publish()
        SQLiteClock.advance()
        try b.consume()
        try exchange([a, b])
        try expectBoth(a, b, are: "setting key='k' value='late'")
        #expect(try b.conflicts() == ["attribute|early"])
    }

    @Test func aDeleteBeatsAConcurrentUpdateAndTheJournalKeepsIt() throws {
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a, b])
        try a.write("UPDATE setting SET value = 'edit'")
        try b.write("DELETE FROM setting")
        try exchange([a, b])
        try expectBoth(a, b, are: "nothing")
        #expect(try a.conflicts() == ["deleted|edit"])
        #expect(try b.conflicts() == ["deleted|edit"])
    }

    /// Whether the delete or the update arrives last at a node must not matter once the row is inserted again.
    @Test func anUpdateAfterADeleteCountsOnceTheRowIsBackInEveryOrder() throws {
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a, b])
        try a.write("DELETE FROM setting")
        try a.write("INSERT INTO setting VALUES ('k', 'again')")
        try b.write("UPDATE setting SET value = 'edit'")
        try a.publish()
        try b.publish()
        let all = try lab.messages()
        let update = try #require(all.first { $0.key == Array(b.engine.node.description.utf8) })
        let others = all.filter { $0 != update }
        #expect(others.count == 3)
        // The update takes each position among the others, which arrive in their order.
        var orders = (0...others.count).map { Array(others.prefix($0)) + [update] + Array(others.dropFirst($0)) }
        orders.append(all.reversed())
        for (index, order) in orders.enumerated() {
            let node = try lab.node("order\(index)")
            for message in order { try node.receive([message]) }
            try expectState(node, is: "setting key='k' value='edit'")
        }
    }

    @Test func successiveEditsDoNotConflict() throws {
        try a.write("INSERT INTO setting VALUES ('k', 0); INSERT INTO trip(name) VALUES ('x')")
        for number in 1...3 {
            try exchange([a, b])
            try a.write("UPDATE setting SET value = 'a\(number)'")
            try a.write("UPDATE trip SET name = 'a\(number)'")
            try exchange([a, b])
            try b.write("UPDATE setting SET value = 'b\(number)'")
        }
        try exchange([a, b])
        try a.write("DELETE FROM setting")
        try exchange([a, b])
        try b.write("INSERT INTO setting VALUES ('k', 9)")
        try exchange([a, b])
        #expect(try a.conflicts() == [] && b.conflicts() == [])
        try expectBoth(
            a, b,
            are: """
                setting key='k' value=9
                trip name='a3' budget=NULL
                """)
    }

    @Test func theClockSurvivesARestart() throws {
        let clock = TestClock(SQLiteClock.milliseconds + 200_000)
        let c = try lab.node("c", clock: clock)
        try a.write("INSERT INTO setting VALUES ('k', 0)")
        try exchange([a, c])
        try c.restart()
        let first = try c.hybridTime()
        try c.write("UPDATE setting SET value = 1")
        try exchange([a, c])
        #expect(try first > .zero && c.hybridTime() > first)
        try expectBoth(a, c, are: "setting key='k' value=1")
    }
}
