package import MartletBus
package import MartletMerge

/// Where a consumer stands in its topic, and what follows from each event. Pure: it neither reads nor waits, and has no
/// clock.
package struct TopicReading {
    package enum State: Equatable {
        /// There is no connection. The next step makes one, and examines the topic.
        case disconnected
        /// The partitions are assigned. Those that are named have not been read to their end since.
        case catchingUp(Set<Int32>)
        /// Every partition was read to its end since the assignment. New messages may have come by now.
        case caughtUp
    }

    package enum Event {
        /// Messages were applied.
        ///
        /// - next: the offset after the last of them, by partition.
        /// - rewound: partitions whose first message differs from the one that was read there before.
        case applied(next: [PartitionPosition], rewound: [Int32])
        /// The bus has reported something about the assigned partitions.
        ///
        /// - before: the next offsets as they were before the messages that came with it.
        case reported(ConsumerEvent, before: [Int32: Int64])
        /// The topic has this number of partitions.
        case counted(Int)
        /// A snapshot has moved offsets as often as this since the start.
        case leapt(Int)
    }

    package enum Action: Equatable {
        /// Read the partition again from its first offset.
        case reread(Int32, why: String)
        /// A partition was read to its end.
        ///
        /// - end: the offset after its last message. What lies between that and the reported end is no message: control
        ///   records, such as the markers that end Kafka's transactions, or what compaction removed.
        case noteEnd(Int32, end: Int64, isLower: Bool)
        /// Every partition has been read to its end: compare this node's own transactions, if that is due.
        case compareOwn
        /// Drop the connection.
        case reconnect(why: String?)
        case warn(BusError)
        case fail(BusError)
    }

    package private(set) var state = State.disconnected
    package private(set) var partitions: [Int32] = []
    /// Partitions that had no leader when the others were examined. They are assigned like the others, but nothing of
    /// them is applied: once they have a leader, they are examined at a new connection.
    package private(set) var unexamined: Set<Int32> = []
    /// The next offset to read, by partition.
    package private(set) var next: [Int32: Int64] = [:]
    /// Partitions that got a message since their end was last reached.
    package private(set) var behind: Set<Int32> = []
    /// The ends that were reported since the assignment.
    package private(set) var reached: [Int32: Int64] = [:]
    /// Partitions that are read from one message before the stored offset, and of which nothing has come since the
    /// assignment.
    package private(set) var unproven: Set<Int32> = []
    /// Counts assignments, because events from before the last one say nothing about it.
    package private(set) var assignments = 0
    /// The sequences of this node that were found so far while its own partitions are read again from the beginning. It
    /// has counted up to ``next``, and survives a lost connection.
    package var scan: OwnSequenceScan?
    /// How often snapshots had moved offsets by the assignment.
    private var leaps = 0

    package init() {}

    package var isConnected: Bool { state != .disconnected }

    /// Returns true if each partition was read up to this offset, or to an end that is no lower.
    package func hasRead(_ ends: [Int32: Int64]) -> Bool {
        ends.allSatisfy { partition, end in max(next[partition] ?? 0, reached[partition] ?? 0) >= end }
    }

    // MARK: Connecting

    /// The topic has these partitions, and reading continues at the stored offsets. If something else has moved them,
    /// the count of this node's own transactions would lack messages, and is dropped. Otherwise it goes on where the
    /// connection was lost: over a bad link, a long topic would never be reread to its end.
    package mutating func look(at partitions: [Int32]? = nil, from stored: [PartitionPosition]) {
        if let partitions { self.partitions = partitions }
        let stored = Dictionary(uniqueKeysWithValues: stored.map { ($0.partition, $0.offset) })
        if stored != next { scan = nil }
        next = stored
    }

    /// Notes which of the partitions have no leader, so that nothing can be asked about them.
    package mutating func leaveUnexamined(_ partitions: Set<Int32>) {
        unexamined = partitions.intersection(self.partitions)
    }

    /// Returns true if the batch has something of a partition that was not examined: the partition has a leader now.
    package func hasUnexamined(_ batch: ConsumerBatch) -> Bool {
        guard !unexamined.isEmpty else { return false }
        return batch.messages.contains { unexamined.contains($0.position.partition) }
            || batch.events.contains { event in
                switch event {
                case .endOfPartition(let position): unexamined.contains(position.partition)
                case .offsetOutOfRange(let partition): unexamined.contains(partition)
                case .disconnected, .error: false
                }
            }
    }

    /// Reading continues at these offsets instead.
    package mutating func move(to positions: [PartitionPosition]) {
        for position in positions { next[position.partition] = position.offset }
    }

    /// The partitions are assigned.
    package mutating func assign(leaps: Int) {
        assignments += 1
        self.leaps = leaps
        state = .catchingUp(Set(partitions))
        behind = Set(partitions)
        reached = [:]
        unproven = []
    }

    /// Reading of these partitions begins with the last message that was read of them.
    package mutating func expectLastMessage(of partitions: some Sequence<Int32>) { unproven = Set(partitions) }

    /// Returns the partitions of these messages whose last message that was read is gone: the log was truncated or
    /// recreated, and has a control record at its offset. What follows must not be applied.
    ///
    /// - Parameter positions: those of messages that were read, in their order.
    package mutating func lackingLastMessage(_ positions: some Sequence<PartitionPosition>) -> Set<Int32> {
        var lacking: Set<Int32> = []
        for position in positions {
            let isFirst = unproven.remove(position.partition) != nil
            if isFirst, position.offset >= next[position.partition] ?? 0 { lacking.insert(position.partition) }
        }
        return lacking
    }

    package mutating func disconnect() { state = .disconnected }

    // MARK: Events

    package mutating func handle(_ event: Event) -> [Action] {
        guard isConnected else { return [] }
        switch event {
        case .applied(let positions, let rewound):
            for position in positions where !rewound.contains(position.partition) {
                next[position.partition] = max(next[position.partition] ?? 0, position.offset)
                behind.insert(position.partition)
            }
            return rewound.map {
                .reread($0, why: "the message before the stored offset is not the one that was read there")
            }
        case .reported(.endOfPartition(let position), let before): return end(position, before: before)
        case .reported(.offsetOutOfRange(let partition), _):
            return [.reread(partition, why: "the stored offset is out of range")]
        case .reported(.disconnected(let reason), _): return [.reconnect(why: reason)]
        case .reported(.error(let error), _):
            guard error.isRetriable else { return [.fail(error)] }
            // The topic may be a different one when it is back.
            return error.code == .unknownTopic ? [.warn(error), .reconnect(why: nil)] : [.warn(error)]
        case .counted(let count): return count == partitions.count ? [] : [.reconnect(why: nil)]
        // Messages that the snapshot covers need not be read, and the new offset must be checked against the topic.
        case .leapt(let count): return count == leaps ? [] : [.reconnect(why: nil)]
        }
    }

    private mutating func end(_ position: PartitionPosition, before: [Int32: Int64]) -> [Action] {
        let partition = position.partition
        // If the partition ends before the stored offset, it was created again.
        if let next = before[partition], position.offset < next {
            return [.reread(partition, why: "the log ends before the stored offset")]
        }
        if unproven.contains(partition) {
            return [.reread(partition, why: "the message before the stored offset is gone")]
        }
        reached[partition] = position.offset
        behind.remove(partition)
        let end = min(position.offset, next[partition] ?? 0)
        var actions = [Action.noteEnd(partition, end: end, isLower: end < position.offset)]
        switch state {
        case .catchingUp(var unread):
            unread.remove(partition)
            state = unread.isEmpty ? .caughtUp : .catchingUp(unread)
        case .caughtUp, .disconnected: break
        }
        if state == .caughtUp { actions.append(.compareOwn) }
        return actions
    }
}
