import Foundation
import GRDB
import MartletBus
import MartletCore
import MartletReplica
import MartletStore
import MartletWire
import Synchronization

/// Evidence in a message that another store uses this store's node ID.
enum IdentityProblem: Sendable, Equatable {
    /// The topic has a transaction of this node that the store never sent, the store's last one being `last`.
    case ahead(sequence: Int64, last: Int64)
    /// The transaction under this sequence differs between the topic and the store.
    case differs(sequence: Int64)

    func error(store path: String) -> StoreError {
        let what =
            switch self {
            case .ahead(let sequence, let last):
                "The topic has transaction \(sequence) of this node, but the store has made only \(last)"
            case .differs(let sequence):
                "The topic and the store have different transactions \(sequence) of this node"
            }
        return StoreError(
            .copied,
            "\(what): the store was restored from a backup, or another copy of it is in use. Nothing was changed.",
            hint: "Run `martlet fork \(path)`: the store gets a node ID of its own, publishes the changes that only it "
                + "has, and reads those that it lacks from the topic.")
    }
}

/// Compares this node's messages on the topic with what the store has made.
enum OwnMessages {
    /// - Parameter payload: the message's payload. It is compared if it is the whole transaction.
    static func problem(_ db: Database, _ envelope: WireEnvelope, _ payload: [UInt8]) throws -> IdentityProblem? {
        let last = try Outbox.lastSequence(db)
        guard envelope.sequence <= last else { return .ahead(sequence: envelope.sequence, last: last) }
        guard envelope.chunk == nil else { return nil }
        // A transaction that has left the outbox can't be compared. One in parts may still fit into one message.
        guard let made = try Outbox.payload(db, envelope.sequence), made != payload else { return nil }
        // The migration to sync format 9 removed changes without a row identity. The message may already have been on
        // its way.
        if try WireTransaction.droppingChangesWithoutIdentity(payload) == made { return nil }
        return .differs(sequence: envelope.sequence)
    }
}

/// The last message of each partition that was compared, so that the next attempt continues there: over a bad link, a
/// long topic would never be compared to its end.
struct ComparedMessages: Sendable {
    private var topic = ""
    private var last: [Int32: LastMessage] = [:]

    /// Forgets the messages of another topic, or of the same one with other partitions.
    mutating func begin(_ topic: String) {
        if topic != self.topic { self = ComparedMessages() }
        self.topic = topic
    }

    /// Returns where to continue: at the message that was compared last, to see that it is still there.
    func offset(_ partition: Int32) -> Int64? { last[partition]?.offset }

    /// - Returns: false if another message was compared at this position. All of the partition must be compared again.
    mutating func note(_ message: IncomingMessage) -> Bool {
        let next = LastMessage(message)
        if let known = last[message.position.partition], known.offset == next.offset, known != next {
            last[message.position.partition] = nil
            return false
        }
        last[message.position.partition] = next
        return true
    }
}

/// Checks, before anything is made under this node's ID, whether all of the node's messages that were not read yet come
/// from this store.
struct OwnMessageCheck {
    let engine: SyncEngine
    let bus: any Bus
    /// Searched for what the topic no longer has.
    let snapshots: (any SnapshotSource)?

    private var session: ReplicaSession { engine.session }

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
            let batch = try consumer.poll(
                maxCount: engine.configuration.applyBatchTransactions, timeout: .milliseconds(500))
            for message in batch.messages {
                try check(message)
                guard engine.compared.withLock({ $0.note(message) }) else {
                    throw BusError(.other, "the topic changed while it was being compared", isRetriable: true)
                }
                let partition = message.position.partition
                if let end = ends[partition], message.position.offset + 1 >= end.high { ends[partition] = nil }
            }
            for event in batch.events {
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
        engine.compared.withLock { $0.begin("\(bus.topic)/\(count)") }
        var ends: [Int32: Watermarks] = [:]
        var isCut = false
        for partition in own.isEmpty ? Set((0..<count).map { Int32($0) }) : own {
            var marks = try consumer.watermarks(partition: partition, timeout: .seconds(5))
            if marks.low > stored[partition] ?? 0 { isCut = true }
            marks.low = max(marks.low, stored[partition] ?? 0)
            if let last = engine.compared.withLock({ $0.offset(partition) }), last > marks.low, last < marks.high {
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
        // A forged message proves nothing, and one that can't be opened can't be compared.
        guard let message = try? engine.messageGuard.open(message, topic: bus.topic, node: session.node) else { return }
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
