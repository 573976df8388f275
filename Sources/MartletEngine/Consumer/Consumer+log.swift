import Logging
import MartletBus
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// What the consumer logs of each batch.
extension Consumer {
    func logOutcome(of report: ApplyReport) {
        for traced in report.traced { log.debug("Transaction applied", metadata: traced.metadata) }
        for gap in report.gaps {
            log.error(
                "Transactions of another node are missing; they are applied when they arrive",
                metadata: ["origin": "\(gap.origin)", "first": "\(gap.first)", "last": "\(gap.last)"])
        }
        if report.deferred > 0 {
            log.error(
                "Transactions parked until their time: a node's clock is too far ahead",
                metadata: ["count": "\(report.deferred)"])
        }
        warnOfClock(report.clockOffset)
        if report.quarantined > 0 {
            log.error("Messages quarantined", metadata: ["count": "\(report.quarantined)"])
        }
        if report.droppedChunks > 0 {
            log.error(
                "Chunks of incomplete transactions dropped: security.limits exceeded. They count as missing",
                metadata: ["transactions": "\(report.droppedChunks)"])
        }
    }

    /// Logs the rows for which a user's trigger failed.
    func warnOfDerived() {
        for failure in session.derived.takeFailures() {
            log.error(
                "Trigger failed on remote changes; the rows were applied, but not the data that it derives",
                metadata: [
                    "trigger": "\(failure.trigger)", "table": "\(failure.table)", "error": "\(failure.message)",
                    "count": "\(failure.count)",
                ])
        }
    }

    /// Logs that this node's clock is wrong by more than a second, at most once in ten minutes.
    private func warnOfClock(_ offset: ClosedRange<Int64>?) {
        guard let offset, offset.lowerBound > 1000 || offset.upperBound < -1000,
            state.schedule.begin(.warnOfClock, at: session.instant())
        else { return }
        log.warning(
            "Clock differs from the broker's; set it, or this node wins or loses conflicts wrongly",
            metadata: [
                "aheadByAtLeastMs": "\(max(0, offset.lowerBound))",
                "behindByAtLeastMs": "\(max(0, -offset.upperBound))",
            ])
    }
}
