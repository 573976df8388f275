public import Logging
public import MartletBus
import MartletMerge
public import Metrics

extension Consumer {
    /// Without snapshots: transactions that the topic dropped before this node read them stay missing.
    ///
    /// - Parameters:
    ///   - countInterval: how often the topic is asked for its number of partitions.
    ///   - metrics: where the metrics of ``SyncMetricNames`` are recorded.
    public convenience init(
        engine: SyncEngine, bus: any Bus, publisher: Publisher? = nil, countInterval: Duration = .seconds(30),
        log: Logger = Logger(label: "martlet.consumer"), metrics: any MetricsFactory = MetricsSystem.factory
    ) {
        self.init(
            engine: engine, bus: bus, publisher: publisher, source: nil, countInterval: countInterval, log: log,
            metrics: metrics)
    }

    /// - Parameters:
    ///   - snapshots: where to find transactions that the topic dropped before this node read them. If nil, they stay
    ///     missing.
    ///   - countInterval: how often the topic is asked for its number of partitions.
    ///   - metrics: where the metrics of ``SyncMetricNames`` are recorded.
    package convenience init(
        engine: SyncEngine, bus: any Bus, publisher: Publisher?, source snapshots: (any SnapshotSource)?,
        countInterval: Duration = .seconds(30), log: Logger = Logger(label: "martlet.consumer"),
        metrics: any MetricsFactory = MetricsSystem.factory
    ) {
        self.init(
            session: engine.session, applier: engine.applier(topic: bus.topic), quarantine: engine.quarantine,
            snapshotState: engine.snapshots, batchCount: engine.configuration.applyBatchTransactions,
            batchBytes: engine.configuration.applyBatchBytes,
            republishing: RepublishPolicy(pauses: engine.configuration.republishPauses), bus: bus,
            publisher: publisher, source: snapshots, countInterval: countInterval, log: log, metrics: metrics)
    }
}
