import Metrics

/// The exporter's metrics.
struct ExportMetrics: Sendable {
    private let records: Counter
    private let retries: Counter
    private let lag: Gauge
    private let isExporting: Gauge

    init(_ factory: any MetricsFactory) {
        records = Counter(label: ExportMetricNames.records, factory: factory)
        retries = Counter(label: ExportMetricNames.retries, factory: factory)
        lag = Gauge(label: ExportMetricNames.lag, factory: factory)
        isExporting = Gauge(label: ExportMetricNames.isExporting, factory: factory)
    }

    func noteRecords(_ count: Int) { records.increment(by: count) }
    func noteRetry() { retries.increment() }

    func note(isExporting: Bool, lag changes: Int64) {
        self.isExporting.record(isExporting ? 1 : 0)
        lag.record(changes)
    }
}
