public import Foundation
public import Logging
import MartletKafka
import MartletStore
public import MartletSync

extension StoreMaintenance {
    /// Lists the snapshots of the configured topic, newest first. Needs no store.
    ///
    /// - Throws: ``/MartletBus/BusError`` if the broker can't be asked.
    public static func snapshots(_ configuration: AgentConfiguration, log: Logger) throws -> [SnapshotInfo] {
        try SnapshotTopic.list(
            on: try KafkaBus(configuration.kafka.forSnapshots, logger: log),
            security: try configuration.security.load(log: log))
    }

    /// Makes a snapshot of the store. Creates the topic for it if it is missing.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.locked` when an agent runs on the store,
    ///   ``/MartletBus/BusError`` when the broker does not take it.
    public static func makeSnapshot(
        store path: String, configuration: AgentConfiguration, log: Logger
    ) throws -> SnapshotInfo {
        try engine(path, configuration, instead: "A running agent makes snapshots: see snapshot.interval.") { engine in
            try configuration.kafka.ensureSnapshotTopic(log)
            return try snapshots(engine, configuration, log).make()
        }
    }

    /// Loads the newest snapshot into the store, or the given one. Resumes an interrupted load. If the connection is
    /// lost, connects again, and gives up after a minute without progress.
    ///
    /// - Returns: what was loaded; nil if there is no snapshot that was not loaded before.
    /// - Throws: the same errors as ``makeSnapshot(store:configuration:log:)``, and an error if the given snapshot
    ///   can't be loaded.
    public static func loadSnapshot(
        _ id: UUID? = nil, store path: String, configuration: AgentConfiguration, log: Logger,
        next: (SnapshotProgress) -> Bool = { _ in true }
    ) throws -> SnapshotProgress? {
        try engine(path, configuration, instead: "A running agent loads a snapshot when it needs one.") { engine in
            let snapshots = try snapshots(engine, configuration, log)
            let bus = try KafkaBus(configuration.kafka, logger: log)
            var count: Int?
            return try LossyWork().run(log: log, notice: "Lost the connection while loading; resuming") { hasCome in
                if count == nil {
                    let consumer = try bus.makeConsumer()
                    defer { consumer.close() }
                    count = try consumer.partitionCount(timeout: .seconds(10))
                    hasCome()
                }
                return try snapshots.load(id, partitionCount: count ?? 0) { progress in
                    hasCome()
                    return next(progress)
                }
            }
        }
    }

    private static func snapshots(
        _ engine: SyncEngine, _ configuration: AgentConfiguration, _ log: Logger
    ) throws -> SnapshotTopic {
        SnapshotTopic(
            engine: engine, bus: try KafkaBus(configuration.kafkaWithRoom.forSnapshots, logger: log),
            topic: configuration.kafka.topic, configuration: configuration.snapshot, log: log)
    }
}
