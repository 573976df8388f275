import MartletBus
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// Checks, before anything is made under this node's ID, whether all of the node's messages that were not read yet come
/// from this store.
struct OwnMessageCheck {
    let session: ReplicaSession
    let messageGuard: MessageGuard
    let compared: ComparedMessages
    /// The most messages that one poll returns.
    let batch: Int
    /// The size from which on a poll returns no further message.
    let batchBytes: Int
    let bus: any Bus
    /// Searched for what the topic no longer has.
    let snapshots: (any SnapshotSource)?

    /// See ``SyncEngine/checkIdentity(on:isStopped:)``.
    func run(isStopped: () -> Bool) throws {
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        var (ends, isCut) = try unread(consumer)
        if isCut, let sequence = try snapshots?.lastOwnSequence() { try check(sequence) }
        guard !ends.isEmpty else { return }
        try consumer.assign(ends.map { PartitionPosition(partition: $0.key, offset: $0.value.low) }.sorted())
        while !ends.isEmpty {
            // A stopped check must not look like a passed one, on which the caller would publish.
            if isStopped() { throw CancellationError() }
            let polled = try consumer.poll(maxCount: batch, maxBytes: batchBytes, timeout: .milliseconds(500))
            for message in polled.messages {
                try check(message)
                guard compared.note(message) else {
                    throw BusError(.other, "the topic changed while it was being compared", isRetriable: true)
                }
                let partition = message.position.partition
                if let end = ends[partition], message.position.offset + 1 >= end.high { ends[partition] = nil }
            }
            for event in polled.events {
                switch event {
                case .endOfPartition(let position): ends[position.partition] = nil
                // The log was truncated: its present messages are checked when they are read.
                case .offsetOutOfRange(let partition): ends[partition] = nil
                case .disconnected(let reason): throw BusError(.unreachable, reason, isRetriable: true)
                case .error(let error): throw error
                }
            }
        }
    }

    /// Returns the offset ranges that may have unread messages of this node, and whether the topic has dropped any of
    /// those.
    private func unread(_ consumer: any BusConsumer) throws -> (ends: [Int32: Watermarks], isCut: Bool) {
        let count = try consumer.partitionCount(timeout: .seconds(5))
        let positions = TopicPositions(session, topic: bus.topic)
        let stored = Dictionary(uniqueKeysWithValues: try positions.all().map { ($0.partition, $0.offset) })
        let own = try positions.isKnown(partitionCount: count) ? OwnCount(session).partitions() : []
        compared.begin("\(bus.topic)/\(count)")
        var ends: [Int32: Watermarks] = [:]
        var isCut = false
        for partition in own.isEmpty ? Set((0..<count).map { Int32($0) }) : own {
            var marks = try consumer.watermarks(partition: partition, timeout: .seconds(5))
            if marks.low > stored[partition] ?? 0 { isCut = true }
            marks.low = max(marks.low, stored[partition] ?? 0)
            if let last = compared.offset(partition), last > marks.low, last < marks.high {
                marks.low = last
            }
            if marks.low < marks.high { ends[partition] = marks }
        }
        return (ends, isCut)
    }

    /// - Parameter sequence: that of a transaction of this node that others have.
    private func check(_ sequence: Int64) throws {
        let last = try session.read(Outbox.lastSequence)
        if sequence > last { throw IdentityProblem.ahead(sequence: sequence, last: last).error(store: session.path) }
    }

    private func check(_ message: IncomingMessage) throws {
        let opened: IncomingMessage
        do {
            opened = try messageGuard.open(message, topic: bus.topic, node: session.node)
        } catch {
            // A forged message proves nothing. One that only can't be decrypted, or isn't encrypted, can't be compared,
            // but its sequence counts: the key ring may be from the same backup as the store.
            if error.isSigned, let envelope = try? WireEnvelope(message), envelope.origin == session.node {
                try check(envelope.sequence)
            }
            return
        }
        try compare(opened)
    }

    private func compare(_ message: IncomingMessage) throws {
        guard let envelope = try? WireEnvelope(message), envelope.origin == session.node, message.isIntact else {
            return
        }
        let problem = try session.read { try OwnMessages.problem($0, envelope, message.payload) }
        if let problem { throw problem.error(store: session.path) }
    }
}

extension [PartitionPosition] {
    fileprivate func sorted() -> [PartitionPosition] { sorted { $0.partition < $1.partition } }
}
