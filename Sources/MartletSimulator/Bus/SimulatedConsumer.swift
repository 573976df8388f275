import MartletSync

/// The reading end of a ``SimulatedLink``. Safe because a simulation runs on one thread.
final class SimulatedConsumer: BusConsumer, @unchecked Sendable {
    private struct Cursor {
        var next: PartitionPosition
        /// The last reported end, so that each end is reported once.
        var reportedEnd: Int64?
        /// True once the position was found to be gone.
        var isLost = false
    }

    private unowned let link: SimulatedLink
    private let epoch: Int
    private var cursors: [Cursor] = []
    private var isClosed = false
    /// The number of polls until the connection is lost, if it is lost at all.
    private var pollsLeft: Int

    init(_ link: SimulatedLink) {
        self.link = link
        epoch = link.log.epoch
        pollsLeft = link.losesConnections ? 2 + link.random.below(4) : .max
    }

    private func check() throws(BusError) {
        try link.call()
        if isClosed { throw BusError(.closed, "the consumer is closed") }
        if link.isCut { throw SimulatedLink.unreachable }
    }

    func partitionCount(timeout: Duration) throws(BusError) -> Int {
        try check()
        return link.log.partitions.count
    }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        try check()
        for position in positions where !link.log.partitions.indices.contains(Int(position.partition)) {
            throw BusError(.unknownTopic, "the topic has no partition \(position.partition)")
        }
        cursors = positions.map { Cursor(next: $0) }
    }

    func knownEnd(of partition: Int32) -> Int64? {
        (try? watermarks(partition: partition, timeout: .zero))?.high
    }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        try check()
        guard link.log.partitions.indices.contains(Int(partition)) else {
            throw BusError(.unknownTopic, "the topic has no partition \(partition)")
        }
        let found = link.log.partitions[Int(partition)]
        return Watermarks(low: found.low, high: found.high)
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try link.call()
        if isClosed { throw BusError(.closed, "the consumer is closed") }
        if link.isCut || epoch != link.log.epoch {
            return ConsumerBatch(events: [.disconnected(reason: "the broker is gone")])
        }
        if link.losesConnections {
            pollsLeft -= 1
            if pollsLeft < 0 {
                pollsLeft = 0
                return ConsumerBatch(events: [.disconnected(reason: "the connection was lost")])
            }
        }
        var batch = ConsumerBatch()
        var order = Array(cursors.indices)
        if link.reorders { order.shuffle(using: &link.random) }
        for index in order where !cursors[index].isLost {
            let most = link.reorders ? link.random.below(4) : maxCount
            read(&cursors[index], min(most, maxCount - batch.messages.count), &batch)
        }
        return batch
    }

    private func read(_ cursor: inout Cursor, _ maxCount: Int, _ batch: inout ConsumerBatch) {
        guard link.log.partitions.indices.contains(Int(cursor.next.partition)) else { return }
        let partition = link.log.partitions[Int(cursor.next.partition)]
        guard (partition.low...partition.high).contains(cursor.next.offset) else {
            cursor.isLost = true
            batch.events.append(.offsetOutOfRange(partition: cursor.next.partition))
            return
        }
        let start = partition.index(of: cursor.next.offset)
        let found = partition.messages[start..<min(start + maxCount, partition.messages.count)]
        batch.messages += found
        if let last = found.last { cursor.next.offset = last.position.offset + 1 }
        // After the last message there are at most control records, which no consumer gets.
        guard start + found.count == partition.messages.count else { return }
        cursor.next.offset = partition.high
        guard cursor.reportedEnd != partition.high else { return }
        cursor.reportedEnd = partition.high
        batch.events.append(.endOfPartition(cursor.next))
    }

    func publishProgress(_ positions: [PartitionPosition], of node: String) {}

    func close() { isClosed = true }
}
