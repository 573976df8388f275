import MartletSync
import Testing

/// What a consumer does at intervals, without a consumer.
@Suite struct ConsumerScheduleTests {
    private let start = ContinuousClock.Instant.now

    private func schedule(countInterval: Duration = .seconds(30)) -> ConsumerSchedule {
        ConsumerSchedule(countInterval: countInterval, at: start)
    }

    @Test func theFirstConnectionCountsPartitionsAndLooksForSnapshotsByItself() {
        let due = ConsumerSchedule.Job.allCases.filter { schedule().isDue($0, at: start) }
        #expect(due == [.storeEnds, .publishOffsets, .warnOfClock])
    }

    @Test(
        arguments: [
            (.countPartitions, .seconds(30)), (.lookForSnapshot, .seconds(30)), (.refreshEnds, .seconds(1)),
            (.storeEnds, .seconds(1)), (.publishOffsets, .seconds(1)), (.warnOfClock, .seconds(600)),
        ] as [(ConsumerSchedule.Job, Duration)])
    func eachJobIsDueAgainAfterItsInterval(_ job: ConsumerSchedule.Job, interval: Duration) {
        var schedule = schedule()
        schedule.note(job, at: start)
        #expect(!schedule.isDue(job, at: start + interval))
        #expect(schedule.isDue(job, at: start + interval + .nanoseconds(1)))
    }

    @Test func aJobThatBeginsIsDoneAndTheOthersAreNot() {
        var schedule = schedule()
        let now = start + .seconds(1000)
        #expect(schedule.begin(.storeEnds, at: now) == true)
        #expect(schedule.begin(.storeEnds, at: now) == false)
        #expect(schedule.begin(.publishOffsets, at: now) == true)
    }

    /// Tests count at every step.
    @Test func withoutAnIntervalPartitionsAreCountedAsSoonAsTimePasses() {
        var schedule = schedule(countInterval: .zero)
        #expect(schedule.begin(.countPartitions, at: start) == false)
        #expect(schedule.begin(.countPartitions, at: start + .nanoseconds(1)) == true)
    }
}
