import Foundation
package import GRDB
package import MartletBus
import MartletCore
package import MartletReplica
import MartletStore
package import MartletWire
import Synchronization

/// Receives messages in the topic's order: drops duplicates, assembles chunks, stores pending changes, and records the
/// read offset of each partition.
package struct Receiver {
    package let engine: SyncEngine
    package let db: Database
    package let context: ReplicaContext
    package let topic: String
    private var offsets: [Int32: ReadPositions.Offset] = [:]
    package let origins = Origins()
    package let chunks: Chunks
    let transactions: TransactionApplier
    private var ownPartitions: Set<Int32>?
    /// The transaction that was assembled from chunks before the SQLite transaction began.
    package let assembled: AssembledTransaction?

    package init(
        engine: SyncEngine, db: Database, context: ReplicaContext, topic: String, assembled: AssembledTransaction? = nil
    ) {
        self.assembled = assembled
        self.engine = engine
        self.db = db
        self.context = context
        self.topic = topic
        chunks = Chunks(db, context)
        transactions = TransactionApplier(
            db: db, context: context, limits: engine.messageGuard.configuration, topic: topic)
    }

    package mutating func receive(_ decoded: DecodedMessage, _ report: inout ApplyReport) throws {
        let message = decoded.message
        let position = message.position
        // Nothing after this message is read, and its offset isn't stored, until the partition is reread. Otherwise a
        // crash in between would lose the fact that it has to be.
        if report.rewound.contains(position.partition) { return }
        let envelope = try? decoded.envelope.get()
        if try isSeen(message, envelope, &report) { return }
        defer {
            offsets[position.partition] = ReadPositions.Offset(
                next: position.offset + 1, origin: envelope?.origin, sequence: envelope?.sequence,
                appended: message.timestamp)
        }
        switch decoded.envelope {
        case .failure where message.isProbe: break
        case .failure(let error): try quarantine(message, decoded.refusal ?? error, &report)
        case .success(let envelope):
            if let refusal = decoded.refusal { return try refuse(decoded.source, envelope, refusal, &report) }
            if envelope.origin == context.node {
                // A message that other nodes can't read counts as lost.
                if decoded.isIntact { try noteOwn(envelope, message.payload, position.partition, &report) }
                report.own += 1
                if message.isBrokerTimestamp, case .success(let transaction) = decoded.transaction {
                    report.noteOwn(
                        made: HybridTime(rawValue: transaction.header.hlc).milliseconds, appended: message.timestamp,
                        read: context.now())
                }
                return
            }
            guard try isNew(envelope) else {
                report.duplicates += 1
                return
            }
            guard decoded.isIntact else { return try reject(message, envelope, .notIntact, &report) }
            guard let chunk = envelope.chunk else {
                switch decoded.transaction {
                case .success(let transaction):
                    try accept(transaction, envelope, payload: message.payload, message, &report)
                case .failure(let error): try reject(message, envelope, error, &report)
                case nil: break
                }
                return
            }
            try take(chunk, of: envelope, message, &report)
        }
    }

    private func take(
        _ chunk: (index: Int, count: Int), of envelope: WireEnvelope, _ message: IncomingMessage,
        _ report: inout ApplyReport
    ) throws {
        switch try taken(chunk, of: envelope, message, &report) {
        case .waiting, .applied: break
        case .refused(let error): try reject(message, envelope, error, &report)
        case .refusedWhole(let payload, let error):
            try reject(message, envelope, payload: payload, error, &report)
        }
    }

    /// The outcome of a chunk.
    package enum Taken {
        /// Other chunks of its transaction are missing.
        case waiting
        case applied
        /// The chunk itself is refused, and not kept.
        case refused(WireError)
        /// It completes a transaction that is refused. The chunks are deleted: the payload is all that is left.
        case refusedWhole([UInt8], WireError)
    }

    /// Keeps a chunk, and applies its transaction once all chunks are here.
    package func taken(
        _ chunk: (index: Int, count: Int), of envelope: WireEnvelope, _ message: IncomingMessage,
        _ report: inout ApplyReport
    ) throws -> Taken {
        let limit = engine.messageGuard.configuration.maxTransactionBytes
        // Checks both the size that the message states and the size that is here: either may be too large.
        let known = max(envelope.size ?? 0, try chunkBytes(envelope, chunk) + message.payload.count)
        guard known <= limit else { return .refused(.tooLarge(known, limit)) }
        guard !message.payload.isEmpty else { return .refused(.emptyChunk) }
        guard let payload = try assemble(message, envelope, chunk, &report) else {
            report.chunks += 1
            return .waiting
        }
        let transaction: DecodedTransaction
        do throws(WireError) {
            if let size = envelope.size, size != payload.count { throw .chunksDiffer }
            if let assembled, assembled.envelope == envelope, assembled.payload.count == payload.count {
                transaction = try assembled.transaction.get()
            } else {
                transaction = try DecodedTransaction(payload: payload)
            }
        } catch {
            return .refusedWhole(payload, error)
        }
        do {
            try accept(transaction, envelope, payload: payload, trace: trace(of: message), &report)
            return .applied
        } catch let error as WireError {
            return .refusedWhole(payload, error)
        }
    }

    // MARK: Positions

    /// Returns true for a message at or before the stored offset. If the message at the stored offset differs from the
    /// one that was read there, the log was truncated or recreated, and the reader must begin again.
    private func isSeen(_ message: IncomingMessage, _ envelope: WireEnvelope?, _ report: inout ApplyReport)
        throws -> Bool
    {
        let position = message.position
        let stored = try ReadProgress.offset(db, context, topic, position.partition)
        guard position.offset < stored.next else { return false }
        guard position.offset == stored.next - 1 else { return true }
        // A recreated topic may have the same message at this offset, sent again and so with another timestamp.
        let isSame =
            stored.origin == envelope?.origin && stored.sequence == envelope?.sequence
            && stored.appended.map { $0 == message.timestamp } ?? true
        if !isSame, !report.rewound.contains(position.partition) { report.rewound.append(position.partition) }
        return true
    }

    /// What is known of the origins of one batch while it is received.
    package final class Origins {
        /// The origins that have advanced, by node number.
        package var changed: Set<Int64> = []
    }

    /// Records the offsets, the clock, and how far each origin has come. Must come last in the transaction.
    package func finish(_ report: inout ApplyReport) {
        for (partition, offset) in offsets {
            ReadProgress.noteOffset(context, topic, partition, offset)
        }
        for node in origins.changed {
            ReadProgress.noteOrigin(context, node, at: context.now())
        }
        context.clock.note()
        guard let offset = report.clockOffset else { return }
        context.notes.add(SyncMeta.clockOffsetLow, offset.lowerBound)
        context.notes.add(SyncMeta.clockOffsetHigh, offset.upperBound)
    }

    /// Records up to which sequence all of this node's transactions were read back from the topic. A transaction after
    /// a gap does not count: the broker may have lost what it acknowledged, and continued behind it. Nor does a
    /// transaction that lacks a chunk.
    private mutating func noteOwn(
        _ envelope: WireEnvelope, _ payload: [UInt8], _ partition: Int32, _ report: inout ApplyReport
    ) throws {
        let confirmed = try context.meta(db, SyncMeta.confirmed) ?? 0
        if let problem = try OwnMessages.problem(db, envelope, payload) {
            throw problem.error(store: engine.session.path)
        }
        if envelope.sequence > confirmed + 1 { try OwnCount.noteHole(db, context) }
        if envelope.sequence > confirmed, try isWhole(envelope, &report) {
            try forgetChunks(envelope)
            try OwnCount.noteRead(db, context, envelope.sequence, after: confirmed)
        }
        var partitions = try ownPartitions ?? OwnPartitions.load(db)
        if partitions.insert(partition).inserted { try OwnPartitions.save(db, partitions) }
        ownPartitions = partitions
    }

    // MARK: Transactions

    package func accept(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope, payload: [UInt8], _ message: IncomingMessage,
        _ report: inout ApplyReport
    ) throws {
        do {
            try accept(transaction, envelope, payload: payload, trace: trace(of: message), &report)
        } catch let error as WireError {
            try reject(message, envelope, payload: payload, error, &report)
        }
    }

    /// Merges a transaction, and marks it as received.
    ///
    /// - Parameter trace: the trace that the message names.
    /// - Throws: ``/MartletWire/WireError`` before anything is written.
    package func accept(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope, payload: [UInt8], trace: TraceContext?,
        _ report: inout ApplyReport
    ) throws {
        guard transaction.origin == envelope.origin, transaction.sequence == envelope.sequence else {
            throw WireError("The headers and the payload name different transactions.")
        }
        let limit = engine.messageGuard.configuration.maxRowBytes
        // No change can be larger than the whole transaction.
        if payload.count > limit { try transaction.checkSizes(limit) }
        guard HybridTime(rawValue: transaction.header.hlc) > context.collected.time else {
            engine.late.note()
            throw WireError.beforeWatermark(context.collected.time)
        }
        try checkReplaced(transaction.header)
        try apply(transaction, envelope, payload: payload, trace: trace, &report)
        try markReceived(envelope, &report)
        try forgetChunks(envelope)
        try settleReplaced(transaction.header, envelope.origin, &report)
    }

    private func apply(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope, payload: [UInt8], trace: TraceContext?,
        _ report: inout ApplyReport
    ) throws {
        let given = trace.flatMap { givenContext($0, envelope.origin, envelope.sequence) }
        report.add(try transactions.apply(transaction, payload: payload, trace: given))
    }
}
