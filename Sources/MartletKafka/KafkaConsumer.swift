import CRdKafka
import Logging
import MartletSync
import Synchronization

/// The reading end of a ``KafkaBus``.
final class KafkaConsumer: BusConsumer {
    private let topic: String
    private let maxPayloadBytes: Int
    /// Makes another one, to look with where a batch ends.
    private let makeAnother: @Sendable () throws(BusError) -> KafkaConsumer
    /// What is read next of each partition that is assigned.
    private let positions = Mutex<[Int32: Int64]>([:])
    /// Nil once closed. A call under way holds its own reference and ends before the client does.
    private let client: Mutex<RDClient?>
    /// Nil where lag tools are told nothing.
    private let offsets: GroupOffsets?

    init(
        _ client: RDClient, topic: String, maxPayloadBytes: Int, offsets: GroupOffsets?,
        makeAnother: @escaping @Sendable () throws(BusError) -> KafkaConsumer
    ) {
        self.client = Mutex(client)
        self.topic = topic
        self.maxPayloadBytes = maxPayloadBytes
        self.offsets = offsets
        self.makeAnother = makeAnother
    }

    func partitionCount(timeout: Duration) throws(BusError) -> Int {
        try open().metadata(topic: topic, timeout: timeout).partitions.count
    }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        try start(positions)
        self.positions.withLock {
            $0 = Dictionary(positions.map { ($0.partition, $0.offset) }, uniquingKeysWith: { $1 })
        }
    }

    private func start(_ positions: [PartitionPosition]) throws(BusError) {
        let client = try open()
        let code = client.read(positions)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw client.context.describe.error(code, doing: "assign partitions of topic \(topic)")
        }
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        offsets?.rest()
        var (batch, unreadable) = try read(maxCount: maxCount, timeout: timeout)
        positions.withLock { positions in
            for message in batch.messages { positions[message.position.partition] = message.position.offset + 1 }
        }
        // Nothing that is on the topic may hold up what is behind it.
        // Of others it is said again: all partitions begin anew.
        if let first = unreadable.first, let message = try pass(first) { batch.messages.append(message) }
        return batch
    }

    /// Goes on behind the batch.
    ///
    /// - Returns: what stands for it. Nil where the partition is assigned no longer.
    private func pass(_ batch: UnreadableBatch) throws(BusError) -> IncomingMessage? {
        guard let position = positions.withLock({ $0[batch.partition] }) else { return nil }
        let probe = try makeAnother()
        defer { probe.close() }
        let next = try UnreadableBatch.end(from: max(position, batch.first)) { offset throws(BusError) in
            try probe.isWithin(batch, offset)
        }
        let positions = positions.withLock { positions in
            positions[batch.partition] = next
            return positions
        }
        try start(
            positions.sorted { $0.key < $1.key }.map { PartitionPosition(partition: $0.key, offset: $0.value) })
        return batch.message(before: next)
    }

    /// How long a broker may take that has just answered.
    private static let patience = Duration.seconds(30)

    private func isWithin(_ batch: UnreadableBatch, _ offset: Int64) throws(BusError) -> Bool {
        try start([PartitionPosition(partition: batch.partition, offset: offset)])
        let deadline = ContinuousClock.now + Self.patience
        while ContinuousClock.now < deadline {
            let (found, unreadable) = try read(maxCount: 1, timeout: .milliseconds(500))
            if let one = unreadable.first { return one.first == batch.first }
            if !found.messages.isEmpty { return false }
            for event in found.events {
                switch event {
                case .endOfPartition, .offsetOutOfRange: return false
                case .disconnected(let reason): throw BusError(.unreachable, reason, isRetriable: true)
                case .error(let error): throw error
                }
            }
        }
        throw BusError(
            .timedOut, "the end of a batch that can't be read was not found, from offset \(batch.first) on",
            isRetriable: true)
    }

    private func read(
        maxCount: Int, timeout: Duration
    ) throws(BusError) -> (batch: ConsumerBatch, unreadable: [UnreadableBatch]) {
        let client = try open()
        var batch = ConsumerBatch()
        guard maxCount > 0 else { return (batch, []) }
        var reader = MessageReader(describe: client.context.describe, maxPayloadBytes: maxPayloadBytes)
        let deadline = ContinuousClock.now + timeout
        while true {
            client.serve()
            drain(client, maxCount, &reader, &batch)
            batch.events += client.context.takeFailures().map { reader.event($0) }
            guard batch.messages.isEmpty, batch.events.isEmpty, reader.unreadable.isEmpty else { break }
            let rest = deadline - .now
            guard rest > .zero, isOpen else { break }
            client.context.wake.wait(timeout: rest)
        }
        return (batch, reader.unreadable)
    }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        let client = try open()
        switch client.watermarks(topic: topic, partition: partition, timeout: timeout) {
        case .success(let watermarks):
            return Watermarks(low: watermarks.low.asOffset, high: watermarks.high.asOffset)
        case .failure(let error):
            throw client.context.describe.error(error.code, doing: "read the offsets of \(topic)[\(partition)]")
        }
    }

    func publishProgress(_ positions: [PartitionPosition], of node: String) {
        guard let client = client.withLock({ $0 }) else { return }
        client.note(positions)
        offsets?.publish(positions, of: node)
    }

    func close() {
        guard let client = client.withLock({ $0.take() }) else { return }
        client.context.wake.signal()
        offsets?.close()
    }

    private var isOpen: Bool { client.withLock { $0 != nil } }

    private func open() throws(BusError) -> RDClient {
        guard let client = client.withLock({ $0 }) else { throw BusError(.closed, "the consumer is closed") }
        return client
    }

    private func drain(_ client: RDClient, _ maxCount: Int, _ reader: inout MessageReader, _ batch: inout ConsumerBatch)
    {
        withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<rd_kafka_message_t>?.self, capacity: maxCount) {
            let count = rd_kafka_consume_batch_queue(client.queue, 0, $0.baseAddress, maxCount)
            guard count > 0 else { return }
            batch.messages.reserveCapacity(count)
            for message in $0.prefix(count) {
                guard let message else { continue }
                reader.read(message, into: &batch)
                rd_kafka_message_destroy(message)
            }
        }
    }
}
