import CRdKafka
import Logging
import MartletBus
import Synchronization

/// The reading end of a ``KafkaBus``.
///
/// It waits for messages in two ways. While it is catching up, the broker answers within
/// ``KafkaConfiguration/fetchWaitMax``, so that the consumer soon learns of the end, and soon reads a new assignment.
/// Once it has caught up, another client takes over, whose fetches the broker holds for
/// ``KafkaConfiguration/idleFetchWaitMax``: see ``ReadingClients``.
final class KafkaConsumer: BusConsumer {
    private let topic: String
    private let maxPayloadBytes: Int
    /// Makes another consumer, to find where an unreadable batch ends.
    private let makeAnother: @Sendable () throws(BusError) -> KafkaConsumer
    /// The next offset to read of each assigned partition.
    private let positions = Mutex<[Int32: Int64]>([:])
    /// The partitions that had no leader when the topic's metadata was last requested.
    private let leaderless = Mutex<Set<Int32>>([])
    /// Nil once closed. A call under way holds its own reference and ends before the client does.
    private let clients: Mutex<ReadingClients?>
    /// Nil if no offsets are stored for lag tools.
    private let offsets: GroupOffsets?

    init(
        _ clients: ReadingClients, topic: String, maxPayloadBytes: Int, offsets: GroupOffsets?,
        makeAnother: @escaping @Sendable () throws(BusError) -> KafkaConsumer
    ) {
        self.clients = Mutex(clients)
        self.topic = topic
        self.maxPayloadBytes = maxPayloadBytes
        self.offsets = offsets
        self.makeAnother = makeAnother
    }

    func partitionCount(timeout: Duration) throws(BusError) -> Int {
        let client = try open()
        let reading = positions.withLock { $0.count }
        // A broker answers the requests of a connection in order: this one would wait for the held fetch, and messages
        // that arrive meanwhile would wait with it.
        guard reading == 0 else { return client.context.partitionCount ?? reading }
        let partitions = try client.metadata(topic: topic, timeout: timeout).partitions
        leaderless.withLock { $0 = Set(partitions.filter { $0.leader < 0 }.map(\.id)) }
        return partitions.count
    }

    var partitionsWithoutLeader: Set<Int32> { leaderless.withLock { $0 } }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        try start(positions)
        self.positions.withLock {
            $0 = Dictionary(positions.map { ($0.partition, $0.offset) }, uniquingKeysWith: { $1 })
        }
    }

    private func start(_ positions: [PartitionPosition]) throws(BusError) {
        // Clients that are no longer used are destroyed outside the lock, so that others don't wait for that.
        let before = clients.withLock { $0 }
        defer { withExtendedLifetime(before) {} }
        try clients.withLock { clients throws(BusError) in
            guard var changed = clients else { throw Self.closed }
            defer { clients = changed }
            try changed.read(positions)
        }
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        try poll(maxCount: maxCount, maxBytes: .max, timeout: timeout)
    }

    func poll(maxCount: Int, maxBytes: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        offsets?.rest()
        var (batch, unreadable) = try read(maxCount: maxCount, maxBytes: maxBytes, timeout: timeout)
        var touched: Set<Int32> = []
        let next = positions.withLock { positions in
            // While one client takes over from another, both may return a message. Each returns messages in order, and
            // neither skips one.
            batch.messages.removeAll { message in
                let position = message.position
                guard let next = positions[position.partition], position.offset >= next else { return true }
                positions[position.partition] = position.offset + 1
                touched.insert(position.partition)
                return false
            }
            return positions
        }
        let events = batch.events
        batch.events += clients.withLock { $0?.note(events, positions: next, touched: touched) } ?? []
        // No message on the topic may block those behind it. Only the first unreadable batch is handled: all partitions
        // are then assigned again, so the others are reported again.
        if let first = unreadable.first, let message = try pass(first) { batch.messages.append(message) }
        return batch
    }

    /// Continues reading after the batch.
    ///
    /// - Returns: a message that represents the batch. Nil if the partition is no longer assigned, or if the batch can
    ///   be read after all: it then comes with the next poll.
    private func pass(_ batch: UnreadableBatch) throws(BusError) -> IncomingMessage? {
        guard let position = positions.withLock({ $0[batch.partition] }) else { return nil }
        let probe = try makeAnother()
        defer { probe.close() }
        let next = try UnreadableBatch.end(from: max(position, batch.first)) { offset throws(BusError) in
            try probe.isWithin(batch, offset)
        }
        let positions = positions.withLock { positions in
            if let next { positions[batch.partition] = next }
            return positions
        }
        try start(
            positions.sorted { $0.key < $1.key }.map { PartitionPosition(partition: $0.key, offset: $0.value) })
        return next.map { batch.message(before: $0) }
    }

    /// How long to wait for a broker that has just answered.
    private static let patience = Duration.seconds(30)

    private func isWithin(_ batch: UnreadableBatch, _ offset: Int64) throws(BusError) -> Bool {
        try start([PartitionPosition(partition: batch.partition, offset: offset)])
        let deadline = ContinuousClock.now + Self.patience
        while ContinuousClock.now < deadline {
            let (found, unreadable) = try read(maxCount: 1, maxBytes: .max, timeout: .milliseconds(500))
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
            .timedOut, "could not find the end of the unreadable batch that begins at offset \(batch.first)",
            isRetriable: true)
    }

    private func read(
        maxCount: Int, maxBytes: Int, timeout: Duration
    ) throws(BusError) -> (batch: ConsumerBatch, unreadable: [UnreadableBatch]) {
        let client = try open()
        var batch = ConsumerBatch()
        guard maxCount > 0 else { return (batch, []) }
        var reader = MessageReader(describe: client.context.describe, maxPayloadBytes: maxPayloadBytes)
        let deadline = ContinuousClock.now + timeout
        var waited = Duration.zero
        while true {
            client.serve()
            client.drain(maxCount, maxBytes, &reader, &batch)
            batch.events += client.context.takeFailures().map { reader.event($0) }
            if let successor = clients.withLock({ $0?.successor }) {
                hear(successor, maxCount, maxBytes, waited, &batch)
            }
            guard batch.messages.isEmpty, batch.events.isEmpty, reader.unreadable.isEmpty else { break }
            let rest = deadline - .now
            guard rest > .zero, isOpen else { break }
            let before = ContinuousClock.now
            client.context.wake.wait(timeout: rest)
            waited = .now - before
        }
        return (batch, reader.unreadable)
    }

    /// Takes the messages and events of the successor client. Its problems are not reported, since the present client
    /// is still reading.
    ///
    /// - Parameter waited: how long the consumer has just waited for messages.
    private func hear(
        _ successor: RDClient, _ maxCount: Int, _ maxBytes: Int, _ waited: Duration, _ batch: inout ConsumerBatch
    ) {
        var reader = MessageReader(describe: successor.context.describe, maxPayloadBytes: maxPayloadBytes)
        var found = ConsumerBatch()
        successor.serve()
        successor.drain(
            maxCount - batch.messages.count, max(0, maxBytes - batch.payloadBytes), &reader, &found)
        var heard = ReadingClients.Heard()
        heard.waited = waited
        heard.messages = batch.messages.map(\.position)
        heard.messagesOfSuccessor = found.messages.map(\.position)
        batch.messages += found.messages
        heard.partitions = Set(heard.messagesOfSuccessor.map(\.partition))
        heard.isSound = reader.unreadable.isEmpty && successor.context.takeFailures().isEmpty
        for event in found.events {
            if case .endOfPartition(let position) = event {
                heard.partitions.insert(position.partition)
            } else {
                heard.isSound = false
            }
        }
        let released = clients.withLock { $0?.hear(heard) }
        // The client is destroyed here, outside the lock.
        withExtendedLifetime(released) {}
    }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        let client = try asking()
        switch client.watermarks(topic: topic, partition: partition, timeout: timeout) {
        case .success(let watermarks):
            return Watermarks(low: watermarks.low.asOffset, high: watermarks.high.asOffset)
        case .failure(let error):
            throw client.context.describe.error(error.code, doing: "read the offsets of \(topic)[\(partition)]")
        }
    }

    func knownEnd(of partition: Int32) -> Int64? { clients.withLock { $0?.client }?.knownEnd(of: partition) }

    func publishProgress(_ positions: [PartitionPosition], of node: String) {
        guard
            let client = clients.withLock({
                $0?.noted = positions; return $0?.client
            })
        else { return }
        client.note(positions)
        offsets?.publish(positions, of: node)
    }

    func close() {
        guard let clients = clients.withLock({ $0.take() }) else { return }
        clients.wake.signal()
        offsets?.close()
    }

    /// True once the patient client has taken over.
    var isPatient: Bool { clients.withLock { $0?.isPatient ?? false } }
    /// True if the next message shows whether the patient client may take over.
    var isOnTrial: Bool { clients.withLock { $0?.isOnTrial(at: .now) ?? false } }
    private var isOpen: Bool { clients.withLock { $0 != nil } }

    private func open() throws(BusError) -> RDClient {
        guard let client = clients.withLock({ $0?.client }) else { throw Self.closed }
        return client
    }

    /// Returns the client for requests to a broker. A broker answers the requests of a connection in order, so a
    /// request on the patient client's connection would wait for the held fetch.
    private func asking() throws(BusError) -> RDClient {
        guard let clients = clients.withLock({ $0 }) else { throw Self.closed }
        return clients.isPatient ? try clients.makeClient(false) : clients.client
    }

    private static var closed: BusError { BusError(.closed, "the consumer is closed") }
}
