import Logging
import MartletStore
import Synchronization

/// What the topic has dropped before it was read here comes from a snapshot.
extension Consumer {
    /// The consumer was stopped in the middle of something that goes on at the next start.
    struct Stopped: Error {}

    /// Loads a snapshot where the topic no longer has what would be read next, or where one was begun. Without one,
    /// reading goes on with what there is, until a newer snapshot comes.
    ///
    /// - Parameter marks: what the topic has.
    /// - Returns: what the snapshot has of this node's own transactions; nil where none was loaded.
    func bootstrap(_ consumer: any BusConsumer, _ marks: [Int32: Watermarks]) throws -> [ClosedRange<Int64>]? {
        guard let snapshots else { return nil }
        var needed = try engine.wantedOffsets()
        if !needed.isEmpty {
            let ends = marks.mapValues(\.high)
            needed.cap(ends)
            try engine.capWanted(ends)
        }
        needed.add(lost(marks))
        state.wantsSnapshot = !needed.isEmpty
        guard try !needed.isEmpty || engine.loadedSnapshots().begun != nil else { return nil }
        let loaded = try load(snapshots, needing: needed)
        if loaded != nil {
            state.next = Dictionary(
                uniqueKeysWithValues: try engine.offsets(topic: bus.topic).map { ($0.partition, $0.offset) })
        }
        // It may have dropped more while the snapshot was loaded.
        let lost = lost(try watermarks(consumer))
        guard !lost.isEmpty else {
            state.wantsSnapshot = try !engine.wantedOffsets().isEmpty
            return loaded
        }
        log.error(
            "Unread transactions are gone from the topic, and no snapshot has them; waiting for the next snapshot",
            metadata: ["partitions": "\(lost.keys.sorted())"])
        state.wantsSnapshot = true
        try engine.want(lost)
        try reset(Set(lost.keys), consumer)
        // It may have dropped more meanwhile.
        try engine.want(state.next.filter { lost[$0.key] != nil })
        return nil
    }

    /// What the topic has now, by partition.
    func watermarks(_ consumer: any BusConsumer) throws -> [Int32: Watermarks] {
        var marks: [Int32: Watermarks] = [:]
        for partition in state.partitions {
            marks[partition] = try consumer.watermarks(partition: partition, timeout: .seconds(5))
        }
        return marks
    }

    /// The partitions that begin after what would be read next, with the offsets at which they do.
    private func lost(_ marks: [Int32: Watermarks]) -> [Int32: Int64] {
        marks.filter { $1.low > state.next[$0] ?? 0 }.mapValues(\.low)
    }

    /// Where the topic begins at just the place at which reading goes on, the message before is gone by which another
    /// topic would be told from this one. A snapshot that covers the place settles it: all that it has must be here,
    /// and all of this node's own that was read back must be in it. Where there are only older ones, what they lack of
    /// this node's own is to be had from nobody but this node, whichever topic it is.
    ///
    /// - Returns: what the newest snapshot has of this node's own transactions, where they are counted anew from it;
    ///   otherwise nil.
    func proveTopic(_ marks: [Int32: Watermarks]) throws -> [ClosedRange<Int64>]? {
        guard let snapshots else { return nil }
        var unproven: [Int32: Int64] = [:]
        for position in try engine.knownOffsets(topic: bus.topic)
        where marks[position.partition]?.low == position.offset {
            unproven[position.partition] = position.offset
        }
        guard !unproven.isEmpty else { return nil }
        let needed = WantedOffsets(unproven)
        let count = state.partitions.count
        let covering = try snapshots.newestHeader(covering: needed, partitionCount: count)
        guard let newest = try covering ?? snapshots.newestHeader(covering: WantedOffsets(), partitionCount: count)
        else { return nil }
        if let covering, try !engine.hasAll(of: covering), try load(snapshots, needing: needed) != nil {
            log.error(
                "Topic replaced, and its oldest messages are gone; a snapshot supplied the missing transactions"
            )
            state.next = Dictionary(
                uniqueKeysWithValues: try engine.offsets(topic: bus.topic).map { ($0.partition, $0.offset) })
        }
        let partitions = try engine.ownPartitions()
        let own = try newest.sequences(of: engine.node)
        guard partitions.isEmpty || !partitions.isDisjoint(with: unproven.keys),
            try OwnSequenceScan(own).contiguous < engine.confirmed()
        else { return nil }
        try engine.recountOwn()
        return own
    }

    private func load(_ snapshots: SnapshotTopic, needing needed: WantedOffsets) throws -> [ClosedRange<Int64>]? {
        log.info("Missing transactions are gone from the topic; looking for a snapshot")
        var reported = engine.instant()
        let loaded = try snapshots.load(needing: needed, partitionCount: state.partitions.count) { now in
            progress.withLock { $0.snapshot = now }
            if engine.instant() - reported > .seconds(5) {
                reported = engine.instant()
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

    /// Looks now and then for a snapshot that has what is missing.
    func lookForSnapshot() throws {
        guard state.wantsSnapshot, let snapshots, engine.instant() - state.lookedForSnapshotAt > countInterval else {
            return
        }
        state.lookedForSnapshotAt = engine.instant()
        if try snapshots.hasCandidate(
            needing: engine.wantedOffsets(), partitionCount: state.partitions.count)
        {
            disconnect()
        }
    }
}
