package import MartletBus

/// How far a node has read the snapshot topic, and what follows from each event. Pure: it neither reads nor waits.
///
/// Each time, reading begins with the last message that was read. If that is not in its place, the topic is another one
/// of the same name: a recreated topic that has as many messages as the former one would otherwise look like that one.
/// A partition that an interrupted attempt has read to its end is looked at again only after all of them were read:
/// over a bad link, which brings few messages at a time, there would be no progress otherwise.
package struct SnapshotTopicReading {
    package enum State: Equatable {
        case idle
        /// The partitions that have not been read to their end yet, with that end.
        case reading(ends: [Int32: Int64])
    }

    package enum Beginning: Equatable {
        /// There is nothing new.
        case upToDate
        /// Assign the partitions, and read on here.
        case read([PartitionPosition])
        /// The topic is another one, or has lost what was read. Forget everything, and begin again.
        case replaced
    }

    package enum Action: Equatable {
        /// Take the message.
        case take
        /// There is nothing to do. A message that comes with it is known.
        case proceed
        /// The topic is another one, or has lost what was read. Forget everything, and begin again.
        case replaced
        /// The topic has changed during the attempt. Forget everything, and end the attempt with this error.
        case forget(BusError)
        /// End the attempt with this error. The next one continues where this one ended.
        case fail(BusError)
    }

    package private(set) var state = State.idle
    /// The next offset to read, by partition.
    private var next: [Int32: Int64] = [:]
    /// The last message that was read, by partition.
    private var last: [Int32: LastMessage] = [:]
    /// Partitions whose last message has not been found in its place again since the beginning of the attempt.
    private var unproven: Set<Int32> = []
    /// Partitions that were read to their end since all were.
    private var finished: Set<Int32> = []

    package init() {}

    package var isAtEnd: Bool { state == .idle }

    /// An attempt begins. The one before it may have been interrupted.
    ///
    /// - Parameter marks: those of all partitions of the topic, in order.
    package mutating func begin(_ marks: [Watermarks]) -> Beginning {
        state = .idle
        unproven = Set(last.keys).subtracting(finished)
        guard next.allSatisfy({ Int($0.key) < marks.count && $0.value <= marks[Int($0.key)].high }),
            last.allSatisfy({ $0.value.offset >= marks[Int($0.key)].low })
        else { return .replaced }
        var ends: [Int32: Int64] = [:]
        var starts: [PartitionPosition] = []
        for (index, mark) in marks.enumerated() {
            let partition = Int32(index)
            let start =
                finished.contains(partition) ? max(next[partition] ?? 0, mark.low) : last[partition]?.offset ?? mark.low
            guard start < mark.high else { continue }
            ends[partition] = mark.high
            starts.append(PartitionPosition(partition: partition, offset: start))
        }
        guard !ends.isEmpty else {
            finished = []
            return .upToDate
        }
        state = .reading(ends: ends)
        return .read(starts)
    }

    package mutating func handle(_ message: IncomingMessage) -> Action {
        let partition = message.position.partition
        let found = LastMessage(message)
        if unproven.remove(partition) != nil {
            guard last[partition] == found else { return .replaced }
            noteEnd(partition)
            return .proceed
        }
        last[partition] = found
        next[partition] = message.position.offset + 1
        noteEnd(partition)
        return .take
    }

    package mutating func handle(_ event: ConsumerEvent) -> Action {
        switch event {
        case .endOfPartition(let position):
            guard !unproven.contains(position.partition) else { return .replaced }
            next[position.partition] = max(next[position.partition] ?? 0, position.offset)
            finish(position.partition)
            return .proceed
        case .error(let error): return .fail(error)
        case .disconnected(let reason): return .fail(BusError(.unreachable, reason, isRetriable: true))
        case .offsetOutOfRange:
            return .forget(
                BusError(.other, "the snapshot topic changed while it was being read", isRetriable: true))
        }
    }

    private mutating func noteEnd(_ partition: Int32) {
        guard case .reading(let ends) = state, next[partition] ?? 0 >= ends[partition] ?? .max else { return }
        finish(partition)
    }

    private mutating func finish(_ partition: Int32) {
        guard case .reading(var ends) = state else { return }
        ends[partition] = nil
        finished.insert(partition)
        state = .reading(ends: ends)
        guard ends.isEmpty else { return }
        state = .idle
        finished = []
    }
}
