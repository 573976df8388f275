import Foundation
public import Logging
public import MartletBus
public import MartletEngine
import MartletReplica
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
    private let election: SnapshotElection
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
        election = SnapshotElection(
            node: engine.node, configuration: snapshots.configuration, since: Date(milliseconds: engine.now()))
    }

    /// Checks at intervals until ``stopSignal`` is stopped. Blocks the calling thread.
    public func run() {
        let interval = snapshots.configuration.interval
        guard interval > .zero else { return }
        while !stopSignal.isStopped {
            let isWished = wishes.withLock { $0.since != nil }
            stopSignal.wait(timeout: isWished ? .seconds(1) : min(.seconds(60), max(.milliseconds(100), interval / 20)))
            if stopSignal.isStopped { return }
            do {
                try step()
            } catch {
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
        let standing = try engine.standing(topic: topic)
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
        let answer = election.answer(wish: since, last: last, try list(now), standing, now: now)
        guard answer != .wait else { return nil }
        defer { wishes.withLock { $0.since = nil } }
        guard answer == .make else { return nil }
        log.info("Making a snapshot: another node waits for one")
        let made = try make()
        wishes.withLock { $0.answered = now }
        return made
    }
}

extension SyncEngine {
    /// True if a filter kept changes on this node to rows that other nodes have.
    func hasUnpublishedChangesOfKnownRows() throws -> Bool {
        try read { try Meta.integer($0, SyncMeta.unpublishedOfKnown) != nil }
    }

    package func standing(topic: String) throws -> SnapshotElection.Standing {
        let isWaiting =
            try !wantedOffsets().isEmpty || loadedSnapshots().begun != nil || hasUnpublishedChangesOfKnownRows()
        let positions = try offsets(topic: topic)
        let hasGaps = try read(SequenceGaps.exist)
        return SnapshotElection.Standing(
            positions: Dictionary(uniqueKeysWithValues: positions.map { ($0.partition, $0.offset) }), hasGaps: hasGaps,
            isWaiting: isWaiting)
    }
}
