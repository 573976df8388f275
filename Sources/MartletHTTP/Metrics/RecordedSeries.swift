import Metrics
import Synchronization

/// One counter, gauge or histogram with its labels, as programs record it through swift-metrics.
final class RecordedSeries: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, TimerHandler {
    private struct State {
        var value = 0.0
        /// For a histogram: how many values were at most as large as each bound, and larger than the previous one.
        var buckets: [Int64]
        var count: Int64 = 0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    /// - Parameter bounds: the upper bounds of a histogram's buckets, ascending. Empty for counters and gauges.
    init(bounds: [Double] = []) {
        self.bounds = bounds
        state = Mutex(State(buckets: [Int64](repeating: 0, count: bounds.count)))
    }

    // MARK: Counters and gauges

    func increment(by amount: Int64) { increment(by: Double(amount)) }
    func increment(by amount: Double) { state.withLock { $0.value += amount } }
    func decrement(by amount: Double) { increment(by: -amount) }
    func reset() { set(0.0) }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { state.withLock { $0.value = value } }

    // MARK: Recorders and timers

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard !bounds.isEmpty else { return set(value) }
        let bucket = bounds.firstIndex { value <= $0 }
        state.withLock { state in
            state.value += value
            state.count += 1
            if let bucket { state.buckets[bucket] += 1 }
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }

    /// The samples of this series.
    func samples(_ labels: [MetricFamily.Label]) -> [MetricFamily.Sample] {
        let state = state.withLock { $0 }
        guard !bounds.isEmpty else { return [.init(labels: labels, value: state.value)] }
        var sum: Int64 = 0
        var samples: [MetricFamily.Sample] = []
        for (bound, count) in zip(bounds, state.buckets) {
            sum += count
            let label = MetricFamily.Label("le", PrometheusText.number(bound))
            samples.append(.init(suffix: "_bucket", labels: labels + [label], value: Double(sum)))
        }
        samples.append(.init(suffix: "_bucket", labels: labels + [.init("le", "+Inf")], value: Double(state.count)))
        samples.append(.init(suffix: "_sum", labels: labels, value: state.value))
        samples.append(.init(suffix: "_count", labels: labels, value: Double(state.count)))
        return samples
    }
}
