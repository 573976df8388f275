public import Foundation
public import Logging
public import MartletBus
import MartletCore
public import MartletEngine
package import MartletReplica
import MartletStore
public import MartletWire
import Synchronization

/// The snapshots of a topic: lists them, makes one of this node, and loads them.
///
/// They are on a topic of their own (`<topic>.snapshot`), which is compacted to the newest message of each key. Calls
/// block, wait for each other, and may come from any thread.
public final class SnapshotTopic: SnapshotSource {
    public let configuration: SnapshotConfiguration
    private let engine: SyncEngine
    private let bus: any Bus
    /// The transactions' topic.
    private let topic: String
    private let log: Logger
    private let limit: MessageLimit
    private let directory: Mutex<SnapshotDirectoryBox>
    /// Ends calls that read the topic with a `CancellationError`: they would otherwise go on until they have read all
    /// of it, or wait for a broker that doesn't answer. A load continues at the next start.
    public let stopSignal = WakeSignal()

    // Safe because it is only touched with the mutex locked.
    private struct SnapshotDirectoryBox: @unchecked Sendable {
        var directory: SnapshotDirectory
        /// Snapshots whose offsets belong to another log than the topic's current one. They cover nothing of it.
        var strangers: Set<NodeID> = []
    }

    /// - Parameters:
    ///   - bus: the bus of the snapshot topic, ``name(of:)``.
    ///   - topic: the name of the transactions' topic.
    public init(
        engine: SyncEngine, bus: any Bus, topic: String, configuration: SnapshotConfiguration = .init(),
        log: Logger = Logger(label: "martlet.snapshots")
    ) {
        self.engine = engine
        self.bus = bus
        self.topic = topic
        self.configuration = configuration
        self.log = log
        limit = MessageLimit(bus, configured: engine.configuration.maxMessageBytes)
        let signal = stopSignal
        directory = Mutex(
            SnapshotDirectoryBox(
                directory: SnapshotDirectory(
                    bus, engine.messageGuard, node: { engine.node }, isStopped: { signal.isStopped })))
    }

    /// Returns the name of the snapshot topic of a topic.
    public static func name(of topic: String) -> String { SideTopic.snapshots(of: topic) }

    /// Lists the snapshots on the topic, newest first.
    ///
    /// - Throws: ``/MartletBus/BusError`` when the broker can't be asked.
    public func list() throws -> [SnapshotInfo] {
        try directory.withLock { box in
            try box.directory.update()
            return box.directory.snapshots
        }
    }

    /// Lists the snapshots on a snapshot topic, newest first, without a store.
    public static func list(on bus: any Bus, security: MessageSecurity = .init()) throws -> [SnapshotInfo] {
        let directory = SnapshotDirectory(bus, try MessageGuard(security), node: { .none })
        try directory.update()
        return directory.snapshots
    }

    /// Makes a snapshot of this node. Writers and the applier go on meanwhile.
    ///
    /// - Parameter isStopped: polled at intervals; true ends the call with an error.
    /// - Throws: ``/MartletBus/BusError`` when the broker does not take it, ``/MartletCore/StoreError`` when the store
    ///   can't be read. The messages that were sent until then are no snapshot.
    public func make(isStopped: @escaping () -> Bool = { false }) throws -> SnapshotInfo {
        try make(UUID(), isStopped: isStopped)
    }

    /// Makes a snapshot under an ID that a simulation chooses.
    package func make(_ id: UUID, isStopped: @escaping () -> Bool = { false }) throws -> SnapshotInfo {
        guard try !engine.session.read(UnpublishedChanges.existOfKnownRows) else {
            throw StoreError(
                .invalidArgument,
                "This node changed rows of a table that it ignores and others have: its snapshot would lack them.",
                hint: "Make the snapshot on another node, or remove the table from filters.ignore first.")
        }
        let maker = SnapshotMaker(
            engine: engine, bus: bus, topic: topic, partRows: configuration.partRows, limit: limit, isStopped: isStopped
        )
        try maker.make(NodeID(id))
        guard let made = try list().first(where: { $0.id == id }) else {
            throw StoreError(.corrupt, "The new snapshot is not on the topic.", hint: "Make it again.")
        }
        log.info(
            "Snapshot made",
            metadata: ["snapshot": "\(made.id)", "messages": "\(made.messageCount)", "bytes": "\(made.byteCount)"])
        return made
    }

    /// Loads the newest snapshot that can be loaded, or the given one. Resumes one that was begun before.
    ///
    /// Local changes stay, and win or lose by their stamps. Loading a snapshot again changes nothing.
    /// - Parameters:
    ///   - partitionCount: the number of partitions of the transactions' topic.
    ///   - next: called after each applied part; returns whether to go on.
    /// - Returns: what was loaded; nil if there is no snapshot that was not loaded before.
    /// - Throws: ``/MartletBus/BusError`` when the connection is lost; another call resumes where it stopped. For a
    ///   given snapshot, ``/MartletCore/StoreError`` with the reason why it can't be loaded.
    public func load(
        _ id: UUID? = nil, partitionCount: Int, next: (SnapshotProgress) -> Bool = { _ in true }
    ) throws -> SnapshotProgress? {
        if let id {
            return try directory.withLock { box in
                try box.directory.update()
                return try load(id, box.directory, partitionCount, next)
            }
        }
        return try load(needing: try WantedOffsets.load(engine.session), partitionCount: partitionCount, next: next)
    }

    /// - Parameter needed: the offsets that a snapshot should cover. One that covers them is taken first, even if it
    ///   was loaded before: offsets may have gone back since.
    package func load(
        needing needed: WantedOffsets, partitionCount: Int, next: (SnapshotProgress) -> Bool
    ) throws -> SnapshotProgress? {
        try directory.withLock { box in
            try box.directory.update()
            let known = try engine.session.read(SnapshotPlace.all)
            var isReread = false
            for candidate in candidates(box, needed, known, partitionCount) {
                do {
                    return try load(
                        candidate.id, box.directory, partitionCount,
                        isAgain: known.finished.contains(NodeID(candidate.id)),
                        next)
                } catch let error as StoreError where [.corrupt, .newerVersion, .invalidArgument].contains(error.code) {
                    log.error(
                        "Could not load the snapshot", metadata: ["snapshot": "\(candidate.id)", "reason": "\(error)"])
                    // The snapshot may have been overwritten since the topic was read. Anybody can put many there that
                    // can't be loaded.
                    if !isReread { box.directory.forget() }
                    isReread = true
                    try box.directory.update()
                }
            }
            return nil
        }
    }

    /// Returns true if there is a snapshot that may have the missing transactions.
    package func hasCandidate(needing needed: WantedOffsets, partitionCount: Int) throws -> Bool {
        let known = try engine.session.read(SnapshotPlace.all)
        return try directory.withLock { box in
            try box.directory.update()
            return !candidates(box, needed, known, partitionCount).isEmpty
        }
    }

    /// Notes that a snapshot's offsets belong to another log than the topic's current one, for the lifetime of this
    /// object.
    package func noteStranger(_ id: UUID) { directory.withLock { _ = $0.strangers.insert(NodeID(id)) } }

    /// Returns the header of the newest complete snapshot that covers these offsets.
    package func newestHeader(covering offsets: WantedOffsets, partitionCount: Int) throws -> WireSnapshotHeader? {
        try directory.withLock { box in
            try box.directory.update()
            let newest = box.directory.snapshots.first {
                $0.isComplete && covers($0, offsets, box, partitionCount)
            }
            guard let newest else { return nil }
            return try box.directory.entries[NodeID(newest.id)]?.header?.get()
        }
    }

    /// Returns whether a snapshot covers these offsets. A snapshot of another topic, which was copied or mirrored to
    /// this one, has the rows of that topic's nodes, but covers no offset of this topic.
    private func covers(
        _ snapshot: SnapshotInfo, _ offsets: WantedOffsets, _ box: SnapshotDirectoryBox, _ partitionCount: Int
    ) -> Bool {
        snapshot.topic == topic && snapshot.partitionCount == partitionCount
            && offsets.isSettled(by: snapshot.positions) && !box.strangers.contains(NodeID(snapshot.id))
    }

    private func candidates(
        _ box: SnapshotDirectoryBox, _ needed: WantedOffsets, _ known: (finished: Set<NodeID>, begun: NodeID?),
        _ partitionCount: Int
    ) -> [SnapshotInfo] {
        func settles(_ snapshot: SnapshotInfo) -> Bool {
            !needed.isEmpty && covers(snapshot, needed, box, partitionCount)
        }
        let complete = box.directory.snapshots.filter {
            $0.isComplete && (settles($0) || !known.finished.contains(NodeID($0.id)))
        }
        // A half-loaded snapshot is worth more than a newer one, as long as it is on the topic.
        let begun = complete.filter { NodeID($0.id) == known.begun }
        let others = complete.filter { NodeID($0.id) != known.begun }
        return begun + others.filter(settles) + others.filter { !settles($0) }
    }

    private func load(
        _ id: UUID, _ directory: SnapshotDirectory, _ partitionCount: Int, isAgain: Bool = false,
        _ next: (SnapshotProgress) -> Bool
    ) throws -> SnapshotProgress {
        let node = NodeID(id)
        guard let entry = directory.entries[node] else {
            throw StoreError(
                .invalidArgument, "There is no snapshot \(id).", hint: "List them with `martlet snapshot list`.")
        }
        switch entry.state {
        case .complete: break
        case .unfinished: throw SnapshotFormat.damaged("it is unfinished")
        case .damaged(let what): throw SnapshotFormat.damaged(what)
        case .newerFormat(let what):
            throw StoreError(.newerVersion, what, hint: "Update Martlet. Nothing was changed.")
        }
        let loader = SnapshotLoader(
            engine: engine, bus: bus, topic: topic, partitionCount: partitionCount, isAgain: isAgain,
            isStopped: { [stopSignal] in stopSignal.isStopped })
        let leftOut = engine.snapshots.rowsLeftOut
        defer { warn(ofLeftOut: engine.snapshots.rowsLeftOut - leftOut, id) }
        let progress = try loader.load(node, entry, next: next)
        if progress.isFinished {
            log.info(
                "Snapshot loaded",
                metadata: [
                    "snapshot": "\(id)", "maker": "\(progress.makerName)", "rows": "\(progress.rows)",
                    "tombstones": "\(progress.tombstones)",
                ])
        }
        return progress
    }

    private func warn(ofLeftOut count: Int, _ id: UUID) {
        guard count > 0 else { return }
        log.warning(
            "Old snapshot rows skipped: they may be deleted. Live ones arrive by a check or a newer snapshot",
            metadata: ["snapshot": "\(id)", "rows": "\(count)"])
    }

    /// Returns the last sequence of this node's own transactions in any snapshot. Nil if none has any.
    package func lastOwnSequence() throws -> Int64? {
        try directory.withLock { box in
            try box.directory.update()
            return box.directory.entries.values.compactMap { entry in
                (try? entry.header?.get())?.origins.first { NodeID(bytes: $0.node) == engine.node }
            }.compactMap { try? SequenceSet($0).applied }.max()
        }
    }

    /// Returns the sequences of this node's own transactions that another node's snapshot has.
    package func ownSequences(_ id: UUID) throws -> [ClosedRange<Int64>] {
        try directory.withLock { box in
            guard let entry = box.directory.entries[NodeID(id)], entry.maker != engine.node else { return [] }
            return try entry.header?.get().sequences(of: engine.node) ?? []
        }
    }
}
