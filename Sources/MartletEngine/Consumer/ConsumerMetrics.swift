import Metrics

/// The consumer's metrics.
struct ConsumerMetrics: Sendable {
    let retries: Counter
    let rereads: Counter
    private let applied: Counter
    private let duplicates: Counter
    private let deferred: Counter
    private let quarantined: Counter
    private let commitToVisible: Timer

    init(_ factory: any MetricsFactory) {
        retries = Counter(label: SyncMetricNames.readRetries, factory: factory)
        rereads = Counter(label: SyncMetricNames.rereads, factory: factory)
        applied = Counter(label: SyncMetricNames.applied, factory: factory)
        duplicates = Counter(label: SyncMetricNames.duplicates, factory: factory)
        deferred = Counter(label: SyncMetricNames.deferred, factory: factory)
        quarantined = Counter(label: SyncMetricNames.quarantined, factory: factory)
        commitToVisible = Timer(label: SyncMetricNames.commitToVisible, factory: factory)
    }

    /// - Parameter now: milliseconds since 1970.
    func record(_ report: ApplyReport, now: Int64) {
        applied.increment(by: report.applied)
        duplicates.increment(by: report.duplicates)
        deferred.increment(by: report.deferred)
        quarantined.increment(by: report.quarantined)
        // Negative if this node's clock is behind the origin's.
        for time in report.committed { commitToVisible.recordMilliseconds(max(0, now - time)) }
    }
}
