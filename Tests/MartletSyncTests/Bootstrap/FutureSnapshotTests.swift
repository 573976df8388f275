import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Snapshots that contain a transaction whose clock is ahead.
@Suite struct FutureSnapshotTests {
    @Test func aSnapshotBringsBackNoTransactionThatARestampReplaced() throws {
        let lab = try SnapshotLab("CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value)")
        let clock = TestClock()
        let (a, b, c) = (try lab.node("a", clock: clock), try lab.node("b"), try lab.node("c"))
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try exchange([a, b, c])
        clock.milliseconds = SQLiteClock.milliseconds + 7_200_000
        try a.foreignWrite("UPDATE setting SET value = 2", ahead: .seconds(7200))
        try exchange([a, b, c])
        #expect(try c.pendingMessages().map(\.reason) == [.futureClock])
        let snapshot = try b.makeSnapshot().id
        clock.milliseconds = SQLiteClock.milliseconds
        try a.engine.restamp()
        try exchange([a, c])
        for node in [a, c] {
            #expect(try node.snapshots?.load(snapshot, partitionCount: 2)?.isFinished == true)
            #expect(try node.pendingMessages() == [], "\(node.name)")
        }
        // To a node that has received neither of the two, the snapshot brings the one that it has.
        let late = try lab.node("late")
        #expect(try late.snapshots?.load(snapshot, partitionCount: 2)?.isFinished == true)
        try expectState(
            late,
            is: """
                setting key='k' value=1
                pending futureClock
                """)
        try exchange([a, b, c, late])
        try expectAll([a, b, c, late], are: "setting key='k' value=2")
        try expectSame([a, b, c, late])
    }
}
