public import Logging
public import MartletBus
public import MartletStore
public import Metrics

extension Publisher {
    /// - Parameters:
    ///   - progressInterval: how often at most the publisher stores what was acknowledged. If the process is killed,
    ///     acknowledged transactions that were not stored yet are sent again, and receivers drop them.
    ///   - metrics: where the metrics of ``SyncMetricNames`` are recorded.
    /// - Throws: ``/MartletCore/StoreError`` when the store can't be read.
    public convenience init(
        engine: SyncEngine, bus: any Bus, store: StoreConfiguration = .init(),
        progressInterval: Duration = .milliseconds(200), log: Logger = Logger(label: "martlet.publisher"),
        metrics: any MetricsFactory = MetricsSystem.factory
    ) throws {
        try self.init(
            session: engine.session, messageGuard: engine.messageGuard, configuration: engine.configuration, bus: bus,
            store: store, progressInterval: progressInterval, log: log, metrics: metrics)
    }
}
