import GRDB
import MartletBus
import MartletCore
import MartletReplica
import MartletWire

/// This node's own messages, read back from the topic. None of them is applied (echo suppression): they confirm that
/// the topic has what this node has published, and tell how its clock differs from the broker's.
struct OwnReadback {
    private let db: Database
    private let context: ReplicaContext
    /// Path of the store's file, for errors.
    private let path: String
    private let messageGuard: MessageGuard
    private let reassembly: Reassembly
    /// The partitions in which this node's messages were seen. Nil until they are looked up.
    private var partitions: Set<Int32>?

    init(
        _ db: Database, _ context: ReplicaContext, path: String, _ messageGuard: MessageGuard, _ reassembly: Reassembly
    ) {
        self.db = db
        self.context = context
        self.path = path
        self.messageGuard = messageGuard
        self.reassembly = reassembly
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.copied` if another store has sent the message.
    mutating func take(_ decoded: DecodedMessage, _ envelope: WireEnvelope, _ report: inout ApplyReport) throws {
        let message = decoded.message
        // A message that other nodes can't read counts as lost.
        if decoded.isIntact { try confirm(envelope, message.payload, message.position.partition, &report) }
        report.own += 1
        // What was ingested has the times of another system.
        if message.isBrokerTimestamp, case .success(let transaction) = decoded.transaction,
            transaction.clockedBy == context.node
        {
            // Not by the hybrid clock, which may be ahead of this node's clock because another node's is.
            report.noteOwn(
                made: transaction.header.timestampMs, appended: message.timestamp, read: context.now())
        }
    }

    /// Records up to which sequence all of this node's transactions were read back from the topic. A transaction after
    /// a gap does not count: the broker may have lost what it acknowledged, and continued behind it. Nor does a
    /// transaction that lacks a chunk.
    private mutating func confirm(
        _ envelope: WireEnvelope, _ payload: [UInt8], _ partition: Int32, _ report: inout ApplyReport
    ) throws {
        let confirmed = try context.meta(db, SyncMeta.confirmed) ?? 0
        if let problem = try OwnMessages.problem(db, envelope, payload) { throw problem.error(store: path) }
        if envelope.sequence > confirmed + 1 { try OwnCount.noteHole(db, context) }
        if envelope.sequence > confirmed, try reassembly.noteReadBack(envelope, &report) {
            try reassembly.forget(envelope)
            try OwnCount.noteRead(db, context, envelope.sequence, after: confirmed)
        }
        var partitions = try partitions ?? OwnPartitions.load(db)
        if partitions.insert(partition).inserted { try OwnPartitions.save(db, partitions) }
        self.partitions = partitions
    }

    /// Returns whether somebody else seems to have written a message that names this node, and is not proven to come
    /// from it. Only such a message is worth reporting: one of this node that other nodes can't read counts as lost,
    /// and is sent again.
    func isForeign(_ message: IncomingMessage, _ envelope: WireEnvelope, _ error: WireError) throws -> Bool {
        if error.description == WireError.notIntact.description { return false }
        if let missing = error.missingKey, !messageGuard.ring.ids.contains(missing.id) { return false }
        // This node may have sent the message itself, before it began to encrypt or sign.
        guard message.header(WireHeader.keyID) == nil else { return true }
        return try OwnMessages.problem(db, envelope, message.payload) != nil
    }
}
