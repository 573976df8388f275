import MartletAgent
import MartletSync
import Testing

/// When an agent has become idle, without an agent.
@Suite struct IdleWatchTests {
    private let start = ContinuousClock.now

    private func progress(waiting: Int64, startedAt: ContinuousClock.Instant? = nil) -> ConsumerProgress {
        var progress = ConsumerProgress(startedAt: startedAt ?? start)
        progress.positions = [0: 5000]
        progress.ends = [0: 5000 + waiting]
        return progress
    }

    /// Looks at intervals.
    ///
    /// - Returns: the numbers of the looks at which memory is released.
    private func releases(_ all: [ConsumerProgress]) -> [Int] {
        var watch = IdleWatch()
        return all.indices.filter { watch.look(all[$0], at: start + IdleWatch.interval * $0) }
    }

    @Test func theMemoryOfAStartIsReleasedOnce() {
        #expect(releases(Array(repeating: progress(waiting: 0), count: 6)) == [1])
    }

    @Test func theMemoryOfALongCatchUpIsReleasedAfterIt() {
        let waiting = [0, 0, 0, 2000, 1500, 50, 50, 0].map { progress(waiting: Int64($0)) }
        #expect(releases(waiting) == [1, 6])
    }

    @Test func aCatchUpThatBeginsAgainIsNotOver() {
        let waiting = [2000, 0, 2000, 0, 2000, 0, 0].map { progress(waiting: Int64($0)) }
        #expect(releases(waiting) == [6])
    }

    @Test func aFewMessagesAreNoWork() {
        #expect(releases([0, 0, 900, 900, 900].map { progress(waiting: $0) }) == [1])
    }

    @Test func theStartOfAReloadIsWorkToo() {
        let former = Array(repeating: progress(waiting: 0), count: 4)
        let next = Array(repeating: progress(waiting: 0, startedAt: start + .seconds(7)), count: 4)
        #expect(releases(former + next) == [1, 5])
    }
}
