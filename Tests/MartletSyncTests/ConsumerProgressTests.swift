import MartletSync
import MartletTestSupport
import Testing

/// Whether a node has read what others have published.
@Suite struct ConsumerProgressTests {
    @Test func aSnapshotIsAwaitedForAWhile() {
        let now = ContinuousClock.now
        var progress = ConsumerProgress(startedAt: now)
        progress.hasReadToEnd = true
        #expect(progress.hasCaughtUp(at: now))
        progress.awaitsSnapshotUntil = now + .seconds(1)
        #expect(!progress.hasCaughtUp(at: now))
        #expect(progress.hasCaughtUp(at: now + .seconds(1)))
        progress.hasUnfinishedSnapshot = true
        #expect(!progress.hasCaughtUp(at: now + .seconds(1)))
    }

    /// Others may have published for days, or the topic may have dropped what they did, so that a snapshot is loaded.
    @Test func aNodeThatLostItsConnectionHasNotReadWhatOthersPublishMeanwhile() throws {
        let lab = try Lab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        #expect(!b.consumer.currentProgress.hasCaughtUp(at: .now))
        try b.consume()
        #expect(b.consumer.currentProgress.hasCaughtUp(at: .now))
        b.consumer.disconnect()
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        #expect(!b.consumer.currentProgress.hasCaughtUp(at: .now))
        try b.consume()
        #expect(b.consumer.currentProgress.hasCaughtUp(at: .now))
    }
}
