import Foundation
package import Logging
package import MartletAgent
package import MartletHTTP
import MartletSync
import Metrics
import ServiceLifecycle

/// Pushes an agent's metrics to a collector, by OTLP over HTTP, for machines that nobody can scrape.
///
/// Has one thread, and holds one request at a time. It holds up nobody: if the collector fails, metrics are missing
/// there, and that is all. Run it in one service group with the agent, and before it, so that it ends last.
package final class MetricsPusher: Service {
    /// How long the last push may take, at shutdown.
    private static let lastTimeout = Duration.seconds(3)

    private let configuration: @Sendable () -> TelemetryConfiguration
    private let node: @Sendable () -> String
    private let collect: @Sendable () -> [MetricFamily]
    private let failures: Counter
    private let rejected: Counter
    /// Since when counters count, in nanoseconds since 1970.
    private let start: UInt64
    private let stopSignal = WakeSignal()
    private let log: Logger

    /// - Parameter registry: the one that the agent was given.
    package convenience init(_ agent: ReloadableAgent, registry: MetricsRegistry, log: Logger) {
        let metrics = AgentMetrics(agent, registry: registry, log: log)
        self.init(
            registry: registry, log: log, configuration: { agent.current.configuration.telemetry },
            node: { agent.current.engine.node.description }, collect: { metrics.collect() })
    }

    /// - Parameters:
    ///   - registry: counts what fails.
    ///   - configuration: returns the present one. It is asked before each push.
    ///   - node: returns the node's ID.
    ///   - collect: returns the present metrics. It may block.
    package init(
        registry: MetricsRegistry, log: Logger, configuration: @escaping @Sendable () -> TelemetryConfiguration,
        node: @escaping @Sendable () -> String, collect: @escaping @Sendable () -> [MetricFamily]
    ) {
        self.configuration = configuration
        self.node = node
        self.collect = collect
        self.log = log
        failures = Counter(label: TelemetryMetricNames.failures, factory: registry)
        rejected = Counter(label: TelemetryMetricNames.rejected, factory: registry)
        let process = ProcessFacts.families.first { $0.name == "process_start_time_seconds" }?.samples.first?.value
        start = process.map { UInt64($0 * 1_000_000_000) } ?? Self.now
    }

    private static var now: UInt64 { UInt64(WallClock.milliseconds) * 1_000_000 }

    package func run() async throws {
        // A group cancels its services when one of them has failed.
        await withTaskCancellationOrGracefulShutdownHandler {
            await onThread("martlet.telemetry") { self.pushUntilStopped() }
        } onCancelOrGracefulShutdown: {
            self.stop()
        }
    }

    /// Ends ``pushUntilStopped()``, after a last push. Callable from any thread.
    package func stop() { stopSignal.stop() }

    /// Blocks the calling thread until ``stop()``.
    package func pushUntilStopped() {
        let first = configuration()
        log.info(
            "Pushing metrics",
            metadata: ["endpoint": "\(first.shownURL)", "seconds": "\(first.interval / .seconds(1))"])
        var cycle = PushCycle(now: .now)
        var action = PushCycle.Action.collect(after: .zero)
        var body = Data()
        while true {
            switch action {
            case .collect(let delay), .resend(let delay):
                if delay > .zero { stopSignal.wait(timeout: delay) }
            }
            guard !stopSignal.isStopped else { break }
            let configuration = configuration()
            if case .collect = action {
                body = request(configuration)
                cycle.noteCollected(at: .now, interval: configuration.interval)
            }
            let outcome = CollectorClient.post(
                body, to: configuration, timeout: configuration.timeout, stop: stopSignal)
            count(outcome)
            let step = cycle.note(outcome, at: .now)
            for event in step.events { record(event, configuration) }
            action = step.action
        }
        pushLast()
    }

    /// Collects, and returns the body of a request.
    private func request(_ configuration: TelemetryConfiguration) -> Data {
        let families = collect()
        var resource = configuration.attributes
        resource["service.name"] = configuration.serviceName
        resource["service.instance.id"] = resource["service.instance.id"] ?? node()
        resource["service.version"] = AgentVersion.current
        let request = ExportRequest(
            families, resource: resource, version: AgentVersion.current, start: start, time: Self.now)
        // Text and numbers can always be encoded.
        return (try? request.json) ?? Data()
    }

    /// What the agent did until its end. Not repeated: nobody waits for it.
    private func pushLast() {
        let configuration = configuration()
        let outcome = CollectorClient.post(
            request(configuration), to: configuration, timeout: min(configuration.timeout, Self.lastTimeout))
        if case .delivered = outcome { return }
        log.info("Could not push the last metrics", metadata: ["endpoint": "\(configuration.shownURL)"])
    }

    private func count(_ outcome: PushOutcome) {
        switch outcome {
        case .delivered(let count, _): if count > 0 { rejected.increment(by: count) }
        case .refused, .failed: failures.increment()
        case .cancelled: break
        }
    }

    private func record(_ event: PushCycle.Event, _ configuration: TelemetryConfiguration) {
        let endpoint = Logger.MetadataValue.string(configuration.shownURL)
        switch event {
        case .failing(let reason):
            log.warning("Could not push metrics; will retry", metadata: ["error": "\(reason)", "endpoint": endpoint])
        case .refused(let reason):
            log.error("The collector refuses the metrics", metadata: ["error": "\(reason)", "endpoint": endpoint])
        case .stillFailing(let reason):
            log.debug("Could not push metrics", metadata: ["error": "\(reason)", "endpoint": endpoint])
        case .recovered: log.notice("Metrics are pushed again", metadata: ["endpoint": endpoint])
        case .rejecting(let count, let message):
            log.warning(
                "The collector rejects some of the metrics",
                metadata: ["count": "\(count)", "error": "\(message)", "endpoint": endpoint])
        case .advised(let message):
            log.warning(
                "The collector has accepted the metrics, with a remark",
                metadata: ["message": "\(message)", "endpoint": endpoint])
        }
    }
}
