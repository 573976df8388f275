public import Logging
import MartletExport
import MartletKafka
import MartletStore
import MartletSync
public import Metrics
public import ServiceLifecycle

/// Exports a store on which no agent runs, until it is stopped, or once. A running agent exports by itself, if
/// `export.prefix` is set.
public final class ExportRun: Service {
    private let lock: StoreLock
    private let engine: SyncEngine
    private let exporter: Exporter

    /// Opens the store and takes its lock. Connects to nothing yet.
    ///
    /// - Parameters:
    ///   - configuration: its `export.prefix` is set.
    ///   - isAgain: whether to export all rows again, whatever this store has exported before.
    /// - Throws: ``ConfigurationError``, or ``/MartletCore/StoreError``: `.locked` when an agent runs on the store,
    ///   `.copied` if the store is a copy of another one.
    public init(
        _ configuration: AgentConfiguration, isAgain: Bool = false, log: Logger,
        metrics: any MetricsFactory = MetricsSystem.factory
    ) throws {
        let configuration = try Agent.complete(configuration)
        do {
            lock = try StoreLock(store: configuration.storePath)
        } catch let error as StoreError where error.code == .locked {
            throw StoreError(
                .locked, error.message, hint: "The agent exports the store by itself if its export.prefix is set.")
        }
        engine = try SyncEngine(
            path: configuration.storePath, store: configuration.store, configuration: configuration.sync,
            security: try configuration.security.load(log: log))
        try IdentityCheck.refuseCopies(engine)
        let bus = try KafkaBus(configuration.kafka, logger: log)
        exporter = try Exporter(
            engine: engine,
            topics: KafkaExportTopics(
                configuration.kafka, besides: bus, replicationFactor: configuration.export.replicationFactor, log: log),
            configuration: configuration.export, version: AgentVersion.current, log: log, metrics: metrics)
        if isAgain { try exporter.forgetPosition() }
    }

    /// Exports until a graceful shutdown or a cancellation.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if the path leads to another file by now.
    public func run() async throws {
        await withTaskCancellationOrGracefulShutdownHandler {
            await onThread("martlet.export") { self.exporter.run() }
        } onCancelOrGracefulShutdown: {
            self.exporter.wake.stop()
        }
        try close()
        if let failure = exporter.lastFailure { throw failure }
    }

    /// Exports everything that was committed by now. Blocks the calling thread.
    ///
    /// - Returns: the number of records.
    /// - Throws: the same errors as `Exporter.runUntilCaughtUp()`.
    public func runUntilCaughtUp() throws -> Int {
        let result = Result { try exporter.runUntilCaughtUp() }
        try close()
        return try result.get()
    }

    private func close() throws {
        try engine.close()
        lock.release()
    }
}
