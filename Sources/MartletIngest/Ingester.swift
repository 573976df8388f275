public import Logging
public import MartletBus
package import MartletCore
public import MartletEngine
import MartletReplica
import MartletStore
public import Metrics
import Synchronization

/// Brings the rows that Debezium connectors publish into tracked tables, from where they go to all nodes.
///
/// Each record becomes a change of a row, with the time at which the source made it, and is merged like a change of
/// another node; see `docs/ingest.md`. Runs on a thread that the caller provides, with ``run()``.
public final class Ingester: Sendable {
    /// Stopping it ends the ingester.
    public let wake = WakeSignal()
    private let engine: SyncEngine
    private let log: Logger
    private let metrics: IngestMetrics
    private let mayIngest: @Sendable () -> Bool
    private let work: Mutex<Work>
    private let failure = Mutex<StoreError?>(nil)

    // Safe because it is only touched with the mutex locked.
    private struct Work: @unchecked Sendable {
        var readers: [SourceReader]
        /// True while this node has not read what others have published.
        var isWaiting = false
    }

    /// What a step has led to.
    package enum Outcome: Equatable, Sendable {
        /// This many records were merged, and there may be more.
        case merged(Int)
        /// There was nothing to merge.
        case idle
    }

    /// - Parameters:
    ///   - configuration: has at least one topic.
    ///   - mayBegin: whether this node has read what other nodes have published. Before, it doesn't know what devices
    ///     have made of a row, and a record would overrule them. Asked before each step: a connection may be lost for
    ///     days.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the configuration is wrong, or if a table
    ///   that exists can't take rows of a source.
    public init(
        engine: SyncEngine, topics: any IngestTopics, configuration: IngestConfiguration,
        log: Logger = Logger(label: "martlet.ingest"), metrics: any MetricsFactory = MetricsSystem.factory,
        mayBegin: @escaping @Sendable () -> Bool = { true }
    ) throws {
        if let problem = configuration.validate().first {
            throw StoreError(.invalidArgument, "Invalid ingest configuration: \(problem).")
        }
        let problems = try engine.session.read { try IngestTables.problems(configuration, $0) }
        if let problem = problems.first(where: { !$0.isMissing }) {
            throw StoreError(.invalidArgument, "ingest.topics: \(problem.error.message).", hint: problem.error.hint)
        }
        self.engine = engine
        self.log = log
        mayIngest = mayBegin
        let recorded = IngestMetrics(metrics)
        self.metrics = recorded
        work = Mutex(
            Work(
                readers: configuration.topics.map {
                    SourceReader($0, engine: engine, topics: topics, log: log, metrics: recorded)
                }))
    }

    /// How long a step waits for records, all topics together. Ending the ingester may take as long.
    private static let patience = Duration.milliseconds(500)

    /// The error that ended ``run()``: the store was moved or replaced. Nil: it was stopped, or runs.
    package var lastFailure: StoreError? { failure.withLock { $0 } }

    /// Ingests until ``wake`` is stopped, or the store's path leads to another file. Blocks the calling thread.
    public func run() {
        var backoff = Backoff(from: .milliseconds(200), to: .seconds(30))
        var timeout = Duration.zero
        while !wake.isStopped {
            do {
                let isIdle = try step(timeout: timeout) == .idle
                timeout = isIdle ? Self.patience : .zero
                backoff.reset()
            } catch let error as StoreError where error.code == .moved {
                failure.withLock { $0 = error }
                break
            } catch {
                if wake.isStopped { break }
                metrics.noteRetry()
                log.warning("Could not ingest; will retry", metadata: ["error": "\(error)"])
                wake.wait(timeout: backoff.fail())
            }
        }
        work.withLock { work in for reader in work.readers { reader.disconnect() } }
    }

    /// Ingests everything that the topics have by now, apart from partitions that a record holds up.
    ///
    /// - Returns: the number of records.
    package func runUntilCaughtUp() throws -> Int {
        var count = 0
        while !wake.isStopped {
            if case .merged(let merged) = try step(timeout: .milliseconds(1)) { count += merged }
            if work.withLock({ $0.readers.allSatisfy(\.state.isCaughtUp) }) { break }
        }
        return count
    }

    /// Returns whether to go on.
    private func mayGoOn(_ work: inout Work) -> Bool {
        let mayGoOn = mayIngest()
        if !mayGoOn, !work.isWaiting {
            log.info("Ingest waits until the node has read the topic of the nodes")
            // Nothing polls the connections meanwhile.
            for reader in work.readers { reader.disconnect() }
        }
        work.isWaiting = !mayGoOn
        return mayGoOn
    }

    /// Reads once from each topic, and merges what came.
    ///
    /// - Parameter timeout: how long to wait for records, all topics together.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written, `CancellationError` if a stop has
    ///   interrupted it. What was not merged is read again.
    package func step(timeout: Duration) throws -> Outcome {
        try work.withLock { work in
            try engine.checkIsInPlace()
            guard mayGoOn(&work) else {
                wake.wait(timeout: timeout)
                return .idle
            }
            let share = timeout / max(1, work.readers.count)
            var merged = 0
            var hasWaited = false
            for reader in work.readers {
                if wake.isStopped { break }
                merged += try reader.step(timeout: share)
                hasWaited = hasWaited || reader.state.isConnected
            }
            let states = work.readers.map(\.state)
            metrics.note(lag: states.reduce(0) { $0 + $1.lag }, held: states.reduce(0) { $0 + $1.held })
            if !hasWaited { wake.wait(timeout: timeout) }
            return merged > 0 ? .merged(merged) : .idle
        }
    }
}
