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
    private let since: Date
    private let log: Logger
    public let stopSignal = WakeSignal()
    private let wishes = Mutex(Wishes())
    private let arrivals = Mutex(SnapshotArrivals())

    private struct Wishes {
        /// Since when a node has been known to wait for a snapshot. Nil if none does.
        var since: Date?
        var answered: Date?
    }

    /// - Parameters:
    ///   - topic: the name of the transactions' topic.
    ///   - prepare: called before each snapshot; creates the snapshot topic if it is missing.
    public init(
        engine: SyncEngine, snapshots: SnapshotTopic, topic: String, log: Logger = Logger(label: "martlet.snapshots"),
        prepare: @escaping @Sendable () throws -> Void = {}
    ) {
        self.engine = engine
        self.snapshots = snapshots
        self.topic = topic
        self.prepare = prepare
        self.log = log
        since = Date(milliseconds: engine.now())
    }

    /// Recreated for each use, since a fork changes this node's ID.
    private var election: SnapshotElection {
        SnapshotElection(node: engine.node, configuration: snapshots.configuration, since: since)
    }

    /// Checks at intervals until ``stopSignal`` is stopped. Blocks the calling thread.
    public func run() {
        let interval = snapshots.configuration.interval
        guard interval > .zero else { return }
        var backoff = Backoff(from: .seconds(1), to: .seconds(60))
        while !stopSignal.isStopped {
            let isWished = wishes.withLock { $0.since != nil }
            let regular: Duration = isWished ? .seconds(1) : min(.seconds(60), max(.milliseconds(100), interval / 20))
            stopSignal.wait(timeout: max(regular, backoff.delay))
            if stopSignal.isStopped { return }
            do {
                try step()
                backoff.reset()
            } catch {
                backoff.fail()
                log.warning("Could not make a snapshot; will retry", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Notes that another node waits for a snapshot. Callable from any thread.
    public func want() {
        let now = Date(milliseconds: engine.now())
        let isNew = wishes.withLock { wishes in
            defer { wishes.since = wishes.since ?? now }
            return wishes.since == nil
        }
        if isNew { stopSignal.signal() }
    }

    /// Makes a snapshot if it is this node's turn, or if another node waits for one.
    ///
    /// - Returns: the snapshot, or nil if none was made.
    @discardableResult
    public func step() throws -> SnapshotInfo? {
        let standing = try SnapshotElection.Standing(of: engine.session, topic: topic)
        if let made = try answerWish(standing) { return made }
        // If there are too few messages, there is no need to ask the broker.
        guard election.isDue([], standing, now: .distantFuture) else { return nil }
        let now = Date(milliseconds: engine.now())
        guard election.isDue(try list(now), standing, now: now) else { return nil }
        return try make()
    }

    private func list(_ now: Date) throws -> [SnapshotInfo] {
        let listed = try snapshots.list()
        return arrivals.withLock { $0.corrected(listed, now: now) }
    }

    private func make() throws -> SnapshotInfo? {
        try prepare()
        return try snapshots.make { [stopSignal] in stopSignal.isStopped }
    }

    private func answerWish(_ standing: SnapshotElection.Standing) throws -> SnapshotInfo? {
        let (since, last) = wishes.withLock { ($0.since, $0.answered) }
        guard let since else { return nil }
        let now = Date(milliseconds: engine.now())
        let answer = election.answer(request: since, last: last, try list(now), standing, now: now)
        guard answer != .wait else { return nil }
        guard answer == .make else {
            wishes.withLock { $0.since = nil }
            return nil
        }
        log.info("Making a snapshot: another node waits for one")
        do {
            let made = try make()
            wishes.withLock { $0 = Wishes(answered: now) }
            return made
        } catch {
            // The next step tries again, until the other node would have asked again if it still waits.
            let isOver = now >= since.addingTimeInterval(SnapshotElection.requestPause)
            if isOver { wishes.withLock { $0.since = nil } }
            throw error
        }
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
