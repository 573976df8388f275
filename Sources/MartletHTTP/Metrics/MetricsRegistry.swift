public import Metrics
import Synchronization

/// Keeps the values that are recorded through swift-metrics, for `/metrics`.
///
/// Pass it to an agent, or to `MetricsSystem.bootstrap` for the metrics of other libraries. A series is kept for as
/// long as the registry, so labels must have few values. Safe to use from any thread.
public final class MetricsRegistry: MetricsFactory {
    private struct Family {
        var kind: MetricFamily.Kind
        var bounds: [Double]
        var series: [[MetricFamily.Label]: RecordedSeries] = [:]
    }

    /// For histograms without bounds of their own: 1 ms to an hour.
    private static let defaultBounds = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
    ]

    private let families = Mutex<[String: Family]>([:])

    public init() {}

    /// - Returns: a series that is never collected if the name already belongs to another kind of metric.
    private func series(
        _ label: String, _ dimensions: [(String, String)], _ kind: MetricFamily.Kind
    ) -> RecordedSeries {
        let name = PrometheusText.name(label)
        let labels = dimensions.map { MetricFamily.Label(PrometheusText.name($0.0), $0.1) }.sorted { $0.name < $1.name }
        return families.withLock { families in
            let bounds = kind == .histogram ? Self.defaultBounds : []
            var family = families[name] ?? Family(kind: kind, bounds: bounds)
            guard family.kind == kind else { return RecordedSeries(bounds: bounds) }
            if let known = family.series[labels] { return known }
            let series = RecordedSeries(bounds: family.bounds)
            family.series[labels] = series
            families[name] = family
            return series
        }
    }

    /// Returns everything that was recorded, by name.
    package func collect() -> [MetricFamily] {
        families.withLock { $0 }.sorted { $0.key < $1.key }.map { name, family in
            MetricFamily(
                name: name, kind: family.kind, help: MetricCatalog.help(name),
                samples: family.series.sorted { $0.key.lexicographicallyPrecedes($1.key) { $0.value < $1.value } }
                    .flatMap { $1.samples($0) })
        }
    }

    // MARK: MetricsFactory

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(label, dimensions, .counter)
    }

    public func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler { series(label, dimensions, .counter) }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(label, dimensions, .gauge)
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        series(label, dimensions, aggregate ? .histogram : .gauge)
    }

    /// Records seconds.
    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(label, dimensions, .histogram)
    }

    // The handler's owner may be gone: what it counted stays true.
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    public func destroyMeter(_ handler: any MeterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}
}
