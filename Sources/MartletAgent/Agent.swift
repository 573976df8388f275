import Foundation
public import Logging
import MartletExport
import MartletIngest
import MartletKafka
import MartletStore
public import MartletSync
public import Metrics
public import ServiceLifecycle
import Synchronization

/// One node: syncs a store with the topic until it is stopped.
///
/// Five threads block in calls of their own (reading the topic, publishing, making snapshots, comparing rows with other
/// nodes, watching the write-ahead log), and a sixth takes care of retention. One more exports changes, if
/// `export.prefix` is set, and one more ingests, if `ingest.topics` are. A graceful shutdown lets work in flight
/// finish, for at most five seconds; work that does not finish is safely repeated after the next start.
public final class Agent: Service {
    public let configuration: AgentConfiguration
    public let engine: SyncEngine
    public let publisher: Publisher
    public let consumer: Consumer
    private let bus: KafkaBus
    private let identity: IdentityCheck
    private let snapshots: SnapshotTopic
    private let keeper: SnapshotKeeper
    public let antiEntropy: AntiEntropy
    @available(*, deprecated, renamed: "antiEntropy")
    public var checker: AntiEntropy { antiEntropy }
    /// Nil if nothing is to be exported.
    private let exporter: Exporter?
    /// Nil if nothing is to be ingested.
    private let ingester: Ingester?
    package let lock: StoreLock
    private let watcher: WALWatcher
    /// Nil until the store was compared with the topic.
    private let verified = Mutex<VerifiedIdentity?>(nil)
    private let log: Logger

    /// Opens the store and takes its lock. Connects to nothing yet.
    ///
    /// - Parameter metrics: receives the metrics that `SyncMetricNames` and `KafkaMetricNames` list.
    /// - Throws: ``ConfigurationError``, ``/MartletCore/StoreError`` (`.locked` when another agent runs on the store),
    ///   or ``/MartletBus/BusError`` with code `.configuration`.
    public convenience init(
        _ configuration: AgentConfiguration, log: Logger, metrics: any MetricsFactory = MetricsSystem.factory
    ) throws {
        try self.init(configuration, log: log, metrics: metrics, lock: nil)
    }

    /// - Parameter lock: the store's lock, which an agent before this one has kept. Nil: it is taken.
    package init(
        _ configuration: AgentConfiguration, log: Logger, metrics: any MetricsFactory = MetricsSystem.factory,
        lock kept: StoreLock?
    ) throws {
        let configuration = try Self.complete(configuration)
        self.configuration = configuration
        self.log = log
        guard FileManager.default.fileExists(atPath: configuration.storePath) else {
            throw StoreError(
                .notAStore, "There is no file at \(configuration.storePath).",
                hint: "Create a store with `martlet init`, or track an existing database with `martlet attach`.")
        }
        lock = try kept ?? StoreLock(store: configuration.storePath)
        engine = try SyncEngine(
            path: configuration.storePath, store: configuration.store, configuration: configuration.sync,
            security: try configuration.security.load(log: log))
        identity = IdentityCheck(engine: engine, policy: configuration.whenCopied, log: log)
        try identity.checkPlace()
        bus = try KafkaBus(Self.metered(configuration), logger: log, metrics: metrics)
        publisher = try Publisher(
            engine: engine, bus: bus, store: configuration.store, log: log, metrics: metrics)
        let kafka = configuration.kafka
        snapshots = SnapshotTopic(
            engine: engine, bus: try KafkaBus(kafka.forSnapshots, besides: bus), topic: kafka.topic,
            configuration: configuration.snapshot, log: log)
        consumer = Consumer(
            engine: engine, bus: bus, publisher: publisher, snapshots: snapshots, log: log, metrics: metrics)
        let keeper = SnapshotKeeper(
            engine: engine, snapshots: snapshots, topic: kafka.topic, log: log,
            prepare: { try kafka.ensureSnapshotTopic(log) },
            ends: { [consumer] in consumer.currentProgress.ends })
        self.keeper = keeper
        antiEntropy = AntiEntropy(
            engine: engine, bus: try KafkaBus(kafka.forChecks, besides: bus), topic: kafka.topic,
            configuration: configuration.check, log: log, snapshotWanted: { keeper.want() }
        ) { try kafka.ensureCheckTopic(log) }
        exporter = try Self.exporter(configuration, engine, bus, log, metrics)
        ingester = try Self.ingester(configuration, engine, bus, log, metrics) { [consumer] in
            consumer.currentProgress.hasCaughtUp(at: .now)
        }
        watcher = try WALWatcher(store: configuration.storePath)
    }

    /// Returns true if the engine may enqueue local transactions under the store's node ID. If there are any, that has
    /// to wait until the topic has shown that the ID is this store's.
    private func mayEnqueue() throws -> Bool {
        let isVerified = verified.withLock { $0 != nil }
        return try isVerified || !engine.session.read(UnstampedChanges.exist)
    }

    /// Retries all quarantined messages. Callable from any thread.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.busy` while there are local changes, and the agent has not
    ///   compared the store with the topic yet: a retry would send them under a node ID that may belong to another
    ///   store. The same errors as ``/MartletEngine/SyncEngine/retryQuarantined(_:)``.
    public func retryQuarantined() throws -> QuarantineRetryReport {
        guard try mayEnqueue() else {
            throw StoreError(
                .busy,
                "There are local changes, and the agent has not yet checked on the topic that the store is no copy.",
                hint: "Try again once the agent has read the topic; its log says what holds it up.")
        }
        return try engine.retryQuarantined()
    }

    /// Compares all rows with the history. In a large store that takes a while.
    ///
    /// - Returns: false if it was stopped before the end.
    private func audit() throws -> Bool {
        var backoff = Backoff()
        while !consumer.stopSignal.isStopped {
            do {
                try auditOnce()
                return true
            } catch is CancellationError {
                return false
            } catch let error as StoreError where error.isTransient {
                log.warning("Could not read the store; will retry", metadata: ["error": "\(error)"])
            }
            consumer.stopSignal.wait(timeout: backoff.fail())
            try engine.checkIsInPlace()
        }
        return false
    }

    /// - Throws: `CancellationError` if it was stopped before the end.
    private func auditOnce() throws {
        let begin = ContinuousClock.now
        var reported = begin
        let audit = try engine.audit { [consumer, log] progress in
            if consumer.stopSignal.isStopped { throw CancellationError() }
            guard ContinuousClock.now - reported > .seconds(5) else { return }
            reported = .now
            log.info(
                "Comparing rows with the history", metadata: ["table": "\(progress.table)", "rows": "\(progress.rows)"])
        }
        let took = ContinuousClock.now - begin
        if took > .seconds(1) {
            log.info("Rows compared with the history", metadata: ["milliseconds": "\(took / .milliseconds(1))"])
        }
        guard !audit.isClean else { return }
        log.warning("Found row changes that the history lacked; they are recorded now", metadata: audit.metadata)
    }

    /// Fills in values that depend on others, such as the host's name if the node has none, and validates the result.
    static func complete(_ configuration: AgentConfiguration) throws(ConfigurationError) -> AgentConfiguration {
        var configuration = configuration
        let name = configuration.sync.name ?? ProcessInfo.processInfo.hostName
        configuration.sync.name = name
        configuration.kafka = configuration.kafkaWithRoom
        configuration.kafka.node = name
        configuration.kafka.maxPayloadBytes = configuration.security.rules.maxMessageBytes
        let problems = configuration.validate()
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
        return configuration
    }

    private static func exporter(
        _ configuration: AgentConfiguration, _ engine: SyncEngine, _ bus: KafkaBus, _ log: Logger,
        _ metrics: any MetricsFactory
    ) throws -> Exporter? {
        guard configuration.export.prefix != nil else { return nil }
        let topics = KafkaExportTopics(
            configuration.kafka, besides: bus, replicationFactor: configuration.export.replicationFactor, log: log)
        return try Exporter(
            engine: engine, topics: topics, configuration: configuration.export, version: AgentVersion.current,
            log: log, metrics: metrics)
    }

    private static func ingester(
        _ configuration: AgentConfiguration, _ engine: SyncEngine, _ bus: KafkaBus, _ log: Logger,
        _ metrics: any MetricsFactory, mayBegin: @escaping @Sendable () -> Bool
    ) throws -> Ingester? {
        guard !configuration.ingest.topics.isEmpty else { return nil }
        return try Ingester(
            engine: engine, topics: KafkaIngestTopics(configuration.kafka, besides: bus),
            configuration: configuration.ingest, log: log, metrics: metrics, mayBegin: mayBegin)
    }

    private static func metered(_ configuration: AgentConfiguration) -> KafkaConfiguration {
        var kafka = configuration.kafka
        if configuration.http.listen != nil || configuration.telemetry.isOn, kafka.statisticsInterval == .zero {
            kafka.statisticsInterval = statisticsInterval
        }
        return kafka
    }

    /// Checks a configuration as far as possible without opening the store: the values, and the files that they name.
    ///
    /// - Returns: the configuration as ``configuration`` will have it.
    /// - Throws: the same errors as ``init(_:log:metrics:)``.
    static func check(_ configuration: AgentConfiguration, log: Logger) throws -> AgentConfiguration {
        let configuration = try complete(configuration)
        try SyncEngine.check(configuration.sync, configuration.security.load(log: log))
        for kafka in [metered(configuration), configuration.kafka.forSnapshots, configuration.kafka.forChecks] {
            _ = try KafkaBus(kafka, logger: log)
        }
        return configuration
    }

    /// How often the state of the connections is recorded if metrics are served or pushed.
    private static let statisticsInterval = Duration.seconds(5)

    /// Retries quarantined messages, since this version may understand messages that the previous one did not. If that
    /// fails, nothing is lost: the messages stay in the quarantine, and are retried at the next start.
    private func retryAtStart() {
        do {
            let report = try retryQuarantined()
            guard report != QuarantineRetryReport() else { return }
            log.log(
                level: report.kept > 0 ? .warning : .info, "Quarantined messages retried",
                metadata: [
                    "applied": "\(report.applied)", "parked": "\(report.parked)", "superseded": "\(report.superseded)",
                    "kept": "\(report.kept)",
                ])
        } catch {
            log.warning(
                "Could not retry quarantined messages; retrying at the next start",
                metadata: ["error": "\(error)"])
        }
    }

    public func run() async throws { try await run(keepsLock: false) }

    /// - Parameter keepsLock: true if the caller passes the lock on to the next agent, or releases it.
    package func run(keepsLock: Bool) async throws {
        // A group cancels its services when one of them has failed.
        let result = await withTaskCancellationOrGracefulShutdownHandler {
            await onThread("martlet.agent") { Result { try self.runUntilStopped(keepsLock: keepsLock) } }
        } onCancelOrGracefulShutdown: {
            self.stop()
        }
        try result.get()
    }

    /// Blocks the calling thread until ``stop()``.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.copied` if another store has the same node ID, `.moved` if the
    ///   path leads to another file by now.
    func runUntilStopped(keepsLock: Bool = false) throws {
        // However it ends: whoever holds an agent that has failed doesn't hold the store.
        defer { if !keepsLock { lock.release() } }
        let result = Result { try syncUntilStopped() }
        let closing = Result { try engine.close() }
        if let failure = try result.get() ?? consumer.lastFailure { throw failure }
        try closing.get()
        log.info("The node has stopped")
    }

    /// - Returns: the error that ended it, if the path leads to another file by now.
    private func syncUntilStopped() throws -> StoreError? {
        guard try audit() else {
            log.info("Stopped before all rows were compared with the history; nothing was published")
            return nil
        }
        if try mayEnqueue() { retryAtStart() }
        // Before anything is stamped, enqueued or sent under a node ID that may belong to another store.
        guard let identity = try identity.checkTopic(bus, snapshots, consumer.stopSignal) else {
            log.info("Stopped before the topic could be read; nothing was published")
            return nil
        }
        return sync(as: identity)
    }

    /// Reads, publishes and compares until ``stop()``.
    ///
    /// - Returns: the error that ended it, if the path leads to another file by now.
    private func sync(as identity: VerifiedIdentity) -> StoreError? {
        if identity.isRenamed { publisher.rewind(to: 0) }
        verified.withLock { $0 = identity }
        retryAtStart()
        let bounds = HistoryBounds(age: configuration.historyAge, sizeBytes: configuration.historySizeBytes)
        log.info(
            "The node is running",
            metadata: [
                "store": "\(configuration.storePath)", "node": "\(engine.node)",
                "name": "\(configuration.sync.name ?? "")",
                "topic": "\(configuration.kafka.topic)",
                "history": "\(SizeText.bounds(bounds))",
            ])
        let threads = DispatchGroup()
        // Not `self`: the lock ends with the agent, and a thread may keep its closure alive for a moment after it
        // ended.
        start("martlet.consumer", threads) { [consumer] in consumer.run() }
        start("martlet.publisher", threads) { [publisher] in publisher.run() }
        start("martlet.snapshots", threads) { [keeper] in keeper.run() }
        start("martlet.checks", threads) { [antiEntropy] in antiEntropy.run() }
        if let exporter { start("martlet.export", threads) { exporter.run() } }
        if let ingester { start("martlet.ingest", threads) { ingester.run() } }
        start("martlet.watcher", threads) { [watcher, publisher, exporter] in
            watcher.run {
                publisher.wake.signal()
                exporter?.wake.signal()
            }
        }
        let failure = Housekeeper(engine: engine, consumer: consumer, configuration: configuration, log: log).run()
        if failure != nil || consumer.lastFailure != nil { stop() }
        threads.wait()
        return failure
    }

    /// Ends ``runUntilStopped()``, now or as soon as it begins. Callable from any thread.
    func stop() {
        consumer.stopSignal.stop()
        publisher.wake.stop()
        keeper.stopSignal.stop()
        antiEntropy.stopSignal.stop()
        exporter?.wake.stop()
        ingester?.wake.stop()
        watcher.stop()
        // After those that call them, so that they know why their call ends.
        snapshots.stopSignal.stop()
        engine.session.interrupt()
    }
}

extension AuditReport {
    var metadata: Logger.Metadata {
        ["vanished": "\(vanished)", "appeared": "\(appeared)", "changed": "\(changed)"]
    }
}

/// Runs blocking work on a thread of its own. The group is left when it ends.
private func start(_ name: String, _ group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
    group.enter()
    Thread.begin(name) {
        body()
        group.leave()
    }
}

/// Runs blocking work on a thread of its own, and waits for it.
package func onThread<R: Sendable>(_ name: String, _ body: @escaping @Sendable () -> R) async -> R {
    await withCheckedContinuation { continuation in
        Thread.begin(name) { continuation.resume(returning: body()) }
    }
}
