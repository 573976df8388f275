import Foundation
public import Logging
public import MartletBus
package import MartletCore
public import MartletEngine
import MartletReplica
public import Metrics
import Synchronization

/// Publishes the merged state of a store as change events, while it is this node's turn.
///
/// Each change of the history becomes a record on the topic of its table; see `docs/export.md`. Runs on a thread that
/// the caller provides, with ``run()`` or ``runUntilCaughtUp()``.
public final class Exporter: Sendable {
    /// Ends a wait early when something was committed; stopping it ends the exporter.
    public let wake = WakeSignal()
    private let engine: SyncEngine
    private let topics: any ExportTopics
    private let configuration: ExportConfiguration
    private let names: TopicNames
    private let version: String
    private let log: Logger
    private let metrics: ExportMetrics
    private let work: Mutex<Box>
    private let failure = Mutex<StoreError?>(nil)

    // Safe because it is only touched with the mutex locked.
    private struct Box: @unchecked Sendable {
        var work: ExportWork?
    }

    /// What a step has led to.
    package enum Outcome: Equatable, Sendable {
        /// Another node exports.
        case notLeading
        /// This many records were sent, and there may be more to do.
        case exported(Int)
        /// There is nothing left to do.
        case caughtUp
    }

    /// - Parameters:
    ///   - version: the version of this program, which records name as their source's.
    ///   - configuration: has a prefix.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the configuration is wrong.
    public init(
        engine: SyncEngine, topics: any ExportTopics, configuration: ExportConfiguration, version: String,
        log: Logger = Logger(label: "martlet.export"), metrics: any MetricsFactory = MetricsSystem.factory
    ) throws {
        let problems = configuration.validate()
        guard problems.isEmpty, let prefix = configuration.prefix else {
            throw StoreError(
                .invalidArgument,
                "Invalid export configuration: \((problems + ["prefix: is not set"])[0]).")
        }
        self.engine = engine
        self.topics = topics
        self.configuration = configuration
        self.version = version
        self.log = log
        names = TopicNames(prefix: prefix)
        self.metrics = ExportMetrics(metrics)
        work = Mutex(Box())
    }

    /// How long the exporter waits before it looks again, if nothing wakes it.
    private static let pause = Duration.seconds(1)

    /// The error that ended ``run()``: the store was moved or replaced. Nil: it was stopped, or runs.
    package var lastFailure: StoreError? { failure.withLock { $0 } }

    /// Exports until ``wake`` is stopped, or the store's path leads to another file. Blocks the calling thread.
    public func run() {
        var backoff = Backoff(from: .milliseconds(200), to: .seconds(30))
        while !wake.isStopped {
            do {
                let outcome = try step()
                backoff.reset()
                if case .exported = outcome { continue }
                wake.wait(timeout: Self.pause)
            } catch let error as StoreError where error.code == .moved {
                failure.withLock { $0 = error }
                break
            } catch {
                if wake.isStopped { break }
                metrics.noteRetry()
                log.warning("Could not export; will retry", metadata: ["error": "\(error)"])
                wake.wait(timeout: backoff.fail())
            }
        }
        end()
    }

    /// Exports everything that was committed by now. Waits for its turn while another node exports.
    ///
    /// - Returns: the number of records.
    /// - Throws: ``/MartletBus/BusError`` if the broker does not take them, ``/MartletCore/StoreError`` if the store
    ///   can't be read, `CancellationError` once ``wake`` is stopped.
    public func runUntilCaughtUp() throws -> Int {
        defer { end() }
        var count = 0
        var isWaiting = false
        while true {
            if wake.isStopped { throw CancellationError() }
            switch try step() {
            case .notLeading:
                if !isWaiting, let other = otherExporter {
                    log.warning("Waiting: another node exports", metadata: ["exporter": "\(other)"])
                    isWaiting = true
                }
                wake.wait(timeout: .milliseconds(200))
            case .exported(let records): count += records
            case .caughtUp: return count
            }
        }
    }

    /// Exports the next part of the history, or the rows of the next table, if it is this node's turn.
    ///
    /// - Throws: the same errors as ``runUntilCaughtUp()``. What was not acknowledged is sent again.
    package func step() throws -> Outcome {
        try work.withLock { box in
            let current: ExportWork
            if let work = box.work, work.node == engine.node {
                current = work
            } else {
                // A fork changes the node.
                current = ExportWork(
                    engine: engine, topics: topics, configuration: configuration, names: names, version: version,
                    log: log, metrics: metrics, isStopped: { [wake] in wake.isStopped })
                box.work = current
            }
            do {
                try engine.checkIsInPlace()
                return try current.step()
            } catch {
                current.reset()
                throw error
            }
        }
    }

    /// Forgets how far this node has exported: the next run exports all rows.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written.
    public func forgetPosition() throws {
        try engine.session.writeMeta { try ExportPosition.forget($0, names.prefix) }
    }

    /// Returns the exporter of another node that exports, by its name. Nil if this node does, or if none is known.
    public var otherExporter: String? {
        work.withLock { $0.work?.otherExporter }
    }

    /// Lets another node export at once.
    private func end() {
        work.withLock { box in
            box.work?.end()
            box.work = nil
        }
    }
}
