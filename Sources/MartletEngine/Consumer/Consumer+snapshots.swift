import Foundation
import Logging
import MartletBus
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire
import Synchronization

/// Gets transactions that the topic dropped before this node read them from a snapshot.
extension Consumer {
    /// Thrown when the consumer was stopped in the middle of work that continues at the next start.
    struct Stopped: Error {}

    /// Loads a snapshot if the topic no longer has the next messages to read, or if loading one was begun. Without a
    /// snapshot, the consumer reads what there is until a newer snapshot comes.
    ///
    /// - Parameter marks: the low and high watermarks of each partition.
    /// - Returns: the sequences of this node's own transactions that the snapshot has; nil if none was loaded.
    func bootstrap(_ consumer: any BusConsumer, _ marks: [Int32: Watermarks]) throws -> [ClosedRange<Int64>]? {
        guard let snapshots else { return nil }
        var needed = try WantedOffsets.load(session)
        if !needed.isEmpty {
            // The end of a partition without a leader is not known.
            let unknown = state.reading.unexamined.map { ($0, Int64.max) }
            let ends = marks.mapValues(\.high).merging(unknown) { end, _ in end }
            needed.cap(ends)
            try WantedOffsets.cap(ends, session)
        }
        needed.add(lost(marks))
        state.wantsSnapshot = !needed.isEmpty
        snapshotState.noteSearch(isMissing: false)
        guard try !needed.isEmpty || session.read(SnapshotPlace.all).begun != nil else { return nil }
        let loaded: [ClosedRange<Int64>]?
        do {
            loaded = try load(snapshots, needing: needed)
        } catch let error as BusError {
            // A node that has skipped what it lacks, and has loaded nothing yet, reads on as if there were no snapshot.
            guard try lost(marks).isEmpty && session.read(SnapshotPlace.all).begun == nil else { throw error }
            logUnreadable(error)
            loaded = nil
        }
        snapshotState.noteSearch(isMissing: loaded == nil)
        if loaded != nil { try lookUpOffsets() }
        // Retention may have dropped more while the snapshot was loaded.
        let lost = lost(try watermarks(consumer))
        guard !lost.isEmpty else {
            state.wantsSnapshot = try SnapshotPlace.isAwaited(session)
            return loaded
        }
        log.error(
            "Unread transactions are gone from the topic, and no snapshot has them; waiting for the next snapshot",
            metadata: ["partitions": "\(lost.keys.sorted())"])
        state.wantsSnapshot = true
        try WantedOffsets.add(lost, session)
        try reset(Set(lost.keys), consumer)
        // Retention may have dropped more since then.
        try WantedOffsets.add(state.reading.next.filter { lost[$0.key] != nil }, session)
        return nil
    }

    /// Makes visible whether this node waits for a snapshot.
    func noteSnapshotState() throws {
        let (begun, since) = try session.read { db in
            (try SnapshotPlace.isAnyUnfinished(db), try WantedOffsets.since(db))
        }
        let date = since.map { Date(milliseconds: $0) }
        // A clock that was set back says that the wait has not begun. From now on, the wall clock has no say.
        let patience = ConsumerProgress.snapshotPatience
        let left = since.map { patience - min(max(0, session.now() - $0), patience) }
        progress.withLock {
            $0.hasUnfinishedSnapshot = begun
            // A connection that was lost meanwhile neither ends the wait nor begins it again.
            guard date == nil || $0.awaitsSnapshotSince != date else { return }
            $0.awaitsSnapshotSince = date
            $0.awaitsSnapshotUntil = left.map { session.instant() + .milliseconds($0) }
        }
    }

    /// Returns the topic's current low and high watermarks by partition, except of partitions without a leader.
    func watermarks(_ consumer: any BusConsumer) throws -> [Int32: Watermarks] {
        var marks: [Int32: Watermarks] = [:]
        for partition in state.reading.partitions where !state.reading.unexamined.contains(partition) {
            marks[partition] = try consumer.watermarks(partition: partition, timeout: .seconds(5))
        }
        return marks
    }

    /// The partitions whose first offset lies after the next offset to read, with that first offset.
    private func lost(_ marks: [Int32: Watermarks]) -> [Int32: Int64] {
        marks.filter { $1.low > state.reading.next[$0] ?? 0 }.mapValues(\.low)
    }

    /// Checks by snapshots that the topic is still the same log. If a partition begins exactly at the offset to read
    /// next, the message before it is gone, and with it the usual way to notice that the topic was replaced.
    ///
    /// A snapshot that covers the offset settles it: this node must have all that the snapshot has, and the snapshot
    /// must have all of this node's own transactions that were read back. If there are only older snapshots, nobody but
    /// this node can supply the own transactions that they lack, whichever topic it is.
    ///
    /// - Returns: the sequences of this node's own transactions that the newest snapshot has, if they are counted again
    ///   from it; otherwise nil.
    func proveTopic(_ marks: [Int32: Watermarks]) throws -> [ClosedRange<Int64>]? {
        guard let snapshots else { return nil }
        var unproven: [Int32: Int64] = [:]
        for position in try positions.known()
        where marks[position.partition]?.low == position.offset {
            unproven[position.partition] = position.offset
        }
        guard !unproven.isEmpty else { return nil }
        let needed = WantedOffsets(unproven)
        let count = state.reading.partitions.count
        let covering: WireSnapshotHeader?
        let found: WireSnapshotHeader?
        do {
            covering = try snapshots.newestHeader(covering: needed, partitionCount: count)
            found = try covering ?? snapshots.newestHeader(covering: WantedOffsets(), partitionCount: count)
        } catch let error as BusError where error.code == .unauthorized {
            // Nothing is known to be missing, and a node that may not read snapshots reads the topic all the same.
            log.info(
                "Could not read snapshots to check that the topic is the same; reading continues",
                metadata: ["error": "\(error)"])
            return nil
        }
        guard let newest = found else { return nil }
        if let covering, try !hasAll(of: covering), try load(snapshots, needing: needed) != nil {
            log.error(
                "Topic replaced, and its oldest messages are gone; a snapshot supplied the missing transactions"
            )
            try lookUpOffsets()
        }
        let partitions = try ownCount.partitions()
        let own = try newest.sequences(of: session.node)
        guard partitions.isEmpty || !partitions.isDisjoint(with: unproven.keys),
            try OwnSequenceScan(own).contiguous < ownCount.confirmed()
        else { return nil }
        state.reading.scan = nil
        try ownCount.restart()
        return own
    }

    /// Returns true if this store has all transactions of other nodes that a snapshot has.
    private func hasAll(of header: WireSnapshotHeader) throws -> Bool {
        var theirs = try VersionVector(header.origins)
        theirs.sets[session.node] = nil
        return try VersionVector.known(session).covers(theirs)
    }

    private func load(_ snapshots: any SnapshotSource, needing needed: WantedOffsets) throws -> [ClosedRange<Int64>]? {
        log.info("Missing transactions are gone from the topic; looking for a snapshot")
        var reported = session.instant()
        let loaded = try snapshots.load(needing: needed, partitionCount: state.reading.partitions.count) { now in
            progress.withLock { $0.snapshot = now }
            if session.instant() - reported > .seconds(5) {
                reported = session.instant()
                log.info(
                    "Loading a snapshot",
                    metadata: ["messages": "\(now.messages) of \(now.messageCount)", "rows": "\(now.rows)"])
            }
            return !stopSignal.isStopped
        }
        guard let loaded else { return nil }
        guard loaded.isFinished else { throw Stopped() }
        state.loaded = loaded.id
        return try snapshots.ownSequences(loaded.id)
    }

    /// Looks at intervals for a snapshot that has the missing transactions.
    func lookForSnapshot() throws {
        guard state.wantsSnapshot, let snapshots, state.schedule.begin(.lookForSnapshot, at: session.instant()) else {
            return
        }
        do {
            if try snapshots.hasCandidate(
                needing: WantedOffsets.load(session), partitionCount: state.reading.partitions.count)
            {
                disconnect()
            }
        } catch let error as BusError {
            logUnreadable(error)
        }
    }

    private func logUnreadable(_ error: BusError) {
        log.info("Could not look for a snapshot; reading continues", metadata: ["error": "\(error)"])
    }
}
