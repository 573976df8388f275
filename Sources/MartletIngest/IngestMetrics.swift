import Metrics

/// The ingester's metrics.
struct IngestMetrics: Sendable {
    private let records: Counter
    private let retries: Counter
    private let lag: Gauge
    private let held: Gauge

    init(_ factory: any MetricsFactory) {
        records = Counter(label: IngestMetricNames.records, factory: factory)
        retries = Counter(label: IngestMetricNames.retries, factory: factory)
        lag = Gauge(label: IngestMetricNames.lag, factory: factory)
        held = Gauge(label: IngestMetricNames.held, factory: factory)
    }

    func noteRecords(_ count: Int) { if count > 0 { records.increment(by: count) } }
    func noteRetry() { retries.increment() }

    func note(lag: Int64, held: Int) {
        self.lag.record(lag)
        self.held.record(held)
    }
}
