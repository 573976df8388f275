import Foundation
public import Logging
public import MartletBus
import MartletCore
public import MartletEngine
package import MartletReplica
import MartletStore
import Synchronization

/// Makes a snapshot whenever it is this node's turn, until it is stopped.
///
/// Runs on a thread that the caller provides; see ``run()``.
public final class SnapshotKeeper: Sendable {
    private let engine: SyncEngine
    private let snapshots: SnapshotTopic
    private let topic: String
    private let prepare: @Sendable () throws -> Void
    private let ends: @Sendable () -> [Int32: Int64]
    private let log: Logger
    public let stopSignal = WakeSignal()
    private let cycle: Mutex<SnapshotCycle>

    /// - Parameters:
    ///   - topic: the name of the transactions' topic.
    ///   - prepare: called before each snapshot; creates the snapshot topic if it is missing.
    ///   - ends: the ends of the topic's partitions, as seen since the start. They show that the topic was created
    ///     again.
    public init(
        engine: SyncEngine, snapshots: SnapshotTopic, topic: String, log: Logger = Logger(label: "martlet.snapshots"),
        prepare: @escaping @Sendable () throws -> Void = {}, ends: @escaping @Sendable () -> [Int32: Int64] = { [:] }
    ) {
        self.engine = engine
        self.snapshots = snapshots
        self.topic = topic
        self.prepare = prepare
        self.ends = ends
        self.log = log
        cycle = Mutex(SnapshotCycle(snapshots.configuration, at: engine.instant()))
    }

    /// Checks at intervals until ``stopSignal`` is stopped. Blocks the calling thread.
    public func run() {
        guard snapshots.configuration.interval > .zero else { return }
        while true {
            stopSignal.wait(timeout: cycle.withLock { $0.delay })
            if stopSignal.isStopped { return }
            do {
                try step()
            } catch {
                // Work that a stop has interrupted is no failure.
                if stopSignal.isStopped { return }
                log.warning("Could not make a snapshot; will retry", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Notes that another node waits for a snapshot. Callable from any thread.
    public func want() {
        if handle(.requested) == .look { stopSignal.signal() }
    }

    /// Makes a snapshot if it is this node's turn, or if another node waits for one.
    ///
    /// - Returns: the snapshot, or nil if none was made.
    @discardableResult
    public func step() throws -> SnapshotInfo? {
        do {
            var standing = try SnapshotElection.Standing(of: engine.session, topic: topic)
            standing.ends = ends()
            guard handle(.examined(standing)) == .list else { return nil }
            // Snapshots of another topic that were copied or mirrored to this snapshot topic cover nothing of `topic`.
            // One that doesn't name its topic may be of `topic`.
            let listed = try snapshots.list().filter { $0.topic.isEmpty || $0.topic == topic }
            guard case .make(let isAnswer) = handle(.listed(listed, standing)) else { return nil }
            if isAnswer { log.info("Making a snapshot: another node waits for one") }
            try prepare()
            let made = try snapshots.make { [stopSignal] in stopSignal.isStopped }
            _ = handle(.made)
            return made
        } catch {
            _ = handle(.failed)
            throw error
        }
    }

    private func handle(_ event: SnapshotCycle.Event) -> SnapshotCycle.Action {
        let now = SnapshotCycle.Present(instant: engine.instant(), date: Date(milliseconds: engine.now()))
        let node = engine.node
        return cycle.withLock { $0.handle(event, of: node, at: now) }
    }
}

extension SnapshotElection.Standing {
    /// - Parameter topic: the transactions' topic.
    package init(of session: ReplicaSession, topic: String) throws {
        let positions = try TopicPositions(session, topic: topic).all()
        self.init(
            positions: Dictionary(uniqueKeysWithValues: positions.map { ($0.partition, $0.offset) }),
            hasGaps: try session.read(SequenceGaps.exist),
            isWaiting: try SnapshotPlace.isAwaited(session) || session.read(UnpublishedChanges.existOfKnownRows))
    }
}
