public import Logging
public import MartletBus
public import MartletEngine
public import Metrics

extension Consumer {
    /// - Parameters:
    ///   - snapshots: where to find transactions that the topic dropped before this node read them.
    ///   - countInterval: how often the topic is asked for its number of partitions.
    ///   - metrics: where the metrics of ``/MartletEngine/SyncMetricNames`` are recorded.
    public convenience init(
        engine: SyncEngine, bus: any Bus, publisher: Publisher? = nil, snapshots: SnapshotTopic?,
        countInterval: Duration = .seconds(30), log: Logger = Logger(label: "martlet.consumer"),
        metrics: any MetricsFactory = MetricsSystem.factory
    ) {
        self.init(
            engine: engine, bus: bus, publisher: publisher, source: snapshots, countInterval: countInterval, log: log,
            metrics: metrics)
    }
}

extension SyncEngine {
    /// Checks, before anything is made under this node's ID, whether all of the node's messages that were not read yet
    /// come from this store. Applies nothing.
    ///
    /// Blocks while the topic has more messages.
    /// - Parameters:
    ///   - snapshots: searched for what the topic no longer has.
    ///   - isStopped: called between reads; true ends the check without a result.
    /// - Throws: ``/MartletCore/StoreError`` with code `.copied`, a ``/MartletBus/BusError`` if the topic can't be read
    ///   now, or `CancellationError` if the check was stopped before its end.
    public func checkIdentity(
        on bus: any Bus, snapshots: SnapshotTopic?, isStopped: () -> Bool = { false }
    ) throws {
        try checkIdentity(on: bus, source: snapshots, isStopped: isStopped)
    }
}
