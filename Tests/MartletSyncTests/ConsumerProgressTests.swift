import Foundation
import MartletSync
import MartletTestSupport
import Testing

/// Whether a node has read what others have published.
@Suite struct ConsumerProgressTests {
    @Test func aSnapshotIsAwaitedForAWhileWhateverTheClockDoes() {
        let began = Date(timeIntervalSince1970: 1_000_000)
        var progress = ConsumerProgress(startedAt: .now)
        progress.hasReadToEnd = true
        progress.awaitsSnapshotSince = began
        #expect(!progress.hasCaughtUp(at: began.addingTimeInterval(299)))
        #expect(progress.hasCaughtUp(at: began.addingTimeInterval(301)))
        // The clock was set back.
        #expect(progress.hasCaughtUp(at: began.addingTimeInterval(-1)))
    }

    /// Others may have published for days, or the topic may have dropped what they did, so that a snapshot is loaded.
    @Test func aNodeThatLostItsConnectionHasNotReadWhatOthersPublishMeanwhile() throws {
        let lab = try Lab()
        let (a, b) = (try lab.node("a"), try lab.node("b"))
        #expect(!b.consumer.currentProgress.hasCaughtUp(at: Date()))
        try b.consume()
        #expect(b.consumer.currentProgress.hasCaughtUp(at: Date()))
        b.consumer.disconnect()
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        #expect(!b.consumer.currentProgress.hasCaughtUp(at: Date()))
        try b.consume()
        #expect(b.consumer.currentProgress.hasCaughtUp(at: Date()))
    }
}
