import MartletSync
import Testing

/// When checks, reports and requests are due, without any of them.
@Suite struct AntiEntropyScheduleTests {
    private let start = ContinuousClock.Instant.now
    private let day = Duration.seconds(86_400)

    @Test func aNodeThatStartsReportsAfterHalfAMinuteAndChecksAfterTenMinutes() {
        let schedule = AntiEntropySchedule(interval: day, at: start)
        #expect(!schedule.isReportDue(at: start + .seconds(29), isUrgent: false))
        #expect(schedule.isReportDue(at: start + .seconds(30), isUrgent: false))
        #expect(!schedule.isCheckDue(at: start + .seconds(600), fraction: 0))
        #expect(schedule.isCheckDue(at: start + .seconds(601), fraction: 0))
    }

    @Test func nodesBeginAtDifferentTimes() {
        var schedule = AntiEntropySchedule(interval: day, at: start)
        schedule.noteAgreed(at: start)
        #expect(schedule.isCheckDue(at: start + day + .seconds(1), fraction: 0))
        #expect(!schedule.isCheckDue(at: start + day * 1.24, fraction: 1))
        #expect(schedule.isCheckDue(at: start + day * 1.26, fraction: 1))
    }

    @Test func aRefusedTransactionIsReportedAtOnce() {
        var schedule = AntiEntropySchedule(interval: day, at: start)
        schedule.noteReported(at: start)
        #expect(schedule.isReportDue(at: start, isUrgent: true))
        #expect(!schedule.isReportDue(at: start + .seconds(3600), isUrgent: false))
        #expect(schedule.isReportDue(at: start + day, isUrgent: false))
    }

    @Test func aCheckThatDidNotFitIsContinuedSoon() {
        var schedule = AntiEntropySchedule(interval: day, at: start)
        schedule.noteTried(at: start)
        schedule.noteBegun()
        schedule.noteCut()
        #expect(!schedule.isCheckDue(at: start + .seconds(5), fraction: 0))
        #expect(schedule.isCheckDue(at: start + .seconds(6), fraction: 0))
        // One that could not begin, or could not be sent, leaves that open.
        schedule.noteTried(at: start + .seconds(6))
        #expect(!schedule.isCheckDue(at: start + .seconds(11), fraction: 0))
        #expect(schedule.isCheckDue(at: start + .seconds(12), fraction: 0))
        schedule.noteTried(at: start + .seconds(12))
        schedule.noteBegun()
        #expect(!schedule.isCheckDue(at: start + .seconds(600), fraction: 0))
    }

    @Test func aSnapshotIsRequestedAgainAfterTenMinutes() {
        var schedule = AntiEntropySchedule(interval: day, at: start)
        #expect(schedule.isRequestDue(at: start))
        schedule.noteLooked(at: start, isRequested: false)
        #expect(!schedule.isRequestDue(at: start + .seconds(4)) && schedule.isRequestDue(at: start + .seconds(5)))
        schedule.noteLooked(at: start + .seconds(5), isRequested: true)
        #expect(!schedule.isRequestDue(at: start + .seconds(604)) && schedule.isRequestDue(at: start + .seconds(605)))
    }

    @Test func withoutAnIntervalNothingIsDue() {
        let schedule = AntiEntropySchedule(interval: .zero, at: start)
        #expect(!schedule.isCheckDue(at: start + day, fraction: 0))
        #expect(!schedule.isReportDue(at: start + day, isUrgent: true))
    }
}
