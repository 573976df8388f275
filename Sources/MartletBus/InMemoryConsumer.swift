import Synchronization

/// The reading end of an ``InMemoryBus``.
final class InMemoryConsumer: BusConsumer {
    private struct Cursor {
        var next: PartitionPosition
        /// The last reported end, so that each end is reported only once.
        var reportedEnd: Int64?
        /// True once the position no longer exists.
        var isLost = false
    }

    private struct State {
        var cursors: [Cursor] = []
        var isClosed = false
    }

    private let log: InMemoryLog
    private let state = Mutex(State())

    init(_ log: InMemoryLog) {
        self.log = log
    }

    func partitionCount(timeout: Duration) throws(BusError) -> Int {
        guard !state.withLock({ $0.isClosed }) else { throw Self.closed }
        return log.partitionCount
    }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        try state.withLock { state throws(BusError) in
            guard !state.isClosed else { throw Self.closed }
            for position in positions where !(0..<log.partitionCount).contains(Int(position.partition)) {
                throw BusError(.unknownTopic, "the topic has no partition \(position.partition)")
            }
            state.cursors = positions.map { Cursor(next: $0) }
        }
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try poll(maxCount: maxCount, maxBytes: .max, timeout: timeout)
    }

    func poll(maxCount: Int, maxBytes: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        guard !state.withLock({ $0.isClosed }) else { throw Self.closed }
        guard maxCount > 0 else { return ConsumerBatch() }
        let batch = log.wait(timeout) { reader in
            state.withLock { state in
                if state.isClosed { return ConsumerBatch() }
                let batch = Self.read(&state.cursors, maxCount, maxBytes, reader)
                return batch.messages.isEmpty && batch.events.isEmpty ? nil : batch
            }
        }
        return batch ?? ConsumerBatch()
    }

    func knownEnd(of partition: Int32) -> Int64? {
        (try? watermarks(partition: partition, timeout: .zero))?.high
    }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        guard !state.withLock({ $0.isClosed }) else { throw Self.closed }
        guard let watermarks = log.watermarks(partition) else {
            throw BusError(.unknownTopic, "the topic has no partition \(partition)")
        }
        return watermarks
    }

    func publishProgress(_ positions: [PartitionPosition], of node: String) {}

    func close() {
        state.withLock { $0.isClosed = true }
        log.wake()
    }

    private static let closed = BusError(.closed, "the consumer is closed")

    private static func read(
        _ cursors: inout [Cursor], _ maxCount: Int, _ maxBytes: Int, _ reader: InMemoryLog.Reader
    ) -> ConsumerBatch {
        var batch = ConsumerBatch()
        var bytes = 0
        for index in cursors.indices where !cursors[index].isLost {
            let next = cursors[index].next
            guard let found = reader.messages(from: next, maxCount: maxCount - batch.messages.count) else {
                cursors[index].isLost = true
                batch.events.append(.offsetOutOfRange(partition: next.partition))
                continue
            }
            var isWhole = true
            for message in found {
                isWhole = bytes < maxBytes
                guard isWhole else { break }
                bytes += message.payload.count
                batch.messages.append(message)
                cursors[index].next.offset += 1
            }
            let end = cursors[index].next
            if isWhole, batch.messages.count < maxCount, cursors[index].reportedEnd != end.offset {
                cursors[index].reportedEnd = end.offset
                batch.events.append(.endOfPartition(end))
            }
        }
        return batch
    }
}
