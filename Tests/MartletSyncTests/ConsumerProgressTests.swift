import Foundation
import MartletSync
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
}
