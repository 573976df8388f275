package import GRDB
import MartletBus
import MartletCore
package import MartletReplica
package import MartletWire

/// Takes transactions of other nodes into one commit, whole or in chunks, wherever their messages come from: the topic,
/// the dead-letter queue, or a snapshot. Whether a transaction is new is the caller's question to ``sequences``.
package struct Intake {
    package let sequences: ReceivedSequences
    let quarantine: MessageQuarantine
    let reassembly: Reassembly
    private let acceptance: Acceptance
    private let transactions: TransactionApplier
    private let context: ReplicaContext

    /// - Parameters:
    ///   - topic: the topic that the messages come from, or an empty string.
    ///   - assembled: the transaction that was assembled from chunks before the SQLite transaction began.
    package init(
        _ inbound: Inbound, _ db: Database, _ context: ReplicaContext, topic: String,
        assembled: AssembledTransaction? = nil
    ) {
        let limits = inbound.messageGuard.configuration
        self.context = context
        sequences = ReceivedSequences(db, context)
        quarantine = MessageQuarantine(db, context, inbound.messageGuard, inbound.triedKeys, topic: topic)
        reassembly = Reassembly(
            Chunks(db, context), sequences, node: context.node, limits, ahead: assembled)
        transactions = TransactionApplier(db: db, context: context, limits: limits, topic: topic)
        acceptance = Acceptance(
            db, context, sequences, reassembly, transactions, maxRowBytes: limits.maxRowBytes, late: inbound.late)
    }

    // MARK: Whole transactions

    /// Merges a transaction, and marks it as received.
    ///
    /// - Parameter trace: the trace that its message names.
    /// - Throws: ``/MartletWire/WireError`` before anything is written.
    func accept(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope, payload: TransactionPayload, trace: TraceContext?,
        _ report: inout ApplyReport
    ) throws {
        try acceptance.accept(transaction, envelope, payload: payload, trace: trace, &report)
    }

    /// Merges a part of a transaction that was marked as received before, without that part.
    ///
    /// - Throws: ``/MartletWire/WireError`` before anything is written.
    func accept(part transaction: DecodedTransaction, payload: TransactionPayload, _ report: inout ApplyReport) throws {
        report.add(try transactions.apply(transaction, payload: payload))
    }

    /// Quarantines a message whose sequence is known. The sequence stays open, as a gap: if a message that can be
    /// understood arrives for it later, that is applied.
    ///
    /// - Parameter payload: the whole payload, if the message is the last of its chunks.
    func reject(
        _ message: IncomingMessage, _ envelope: WireEnvelope, payload: TransactionPayload? = nil, _ error: WireError,
        _ report: inout ApplyReport
    ) throws {
        try quarantine.add(message, payload: payload, error, &report)
        try sequences.leaveOpen(envelope, &report)
    }

    // MARK: Chunks

    /// The outcome of a chunk.
    enum Taken {
        /// Other chunks of its transaction are missing.
        case waiting
        case applied
        /// The chunk itself is refused, and not kept.
        case refused(WireError)
        /// It completes a transaction that is refused. Quarantine the payload, and ``forget(_:)`` the chunks.
        case refusedWhole(TransactionPayload, WireError)
    }

    /// Keeps a chunk, and accepts its transaction once all chunks are here.
    ///
    /// - Parameters:
    ///   - partition: where the topic has the chunk. Nil if it comes from elsewhere.
    ///   - trace: the trace that its message names.
    func take(
        _ chunk: (index: Int, count: Int), of envelope: WireEnvelope, _ bytes: [UInt8], partition: Int32? = nil,
        trace: TraceContext?, _ report: inout ApplyReport
    ) throws -> Taken {
        switch try reassembly.add(chunk, of: envelope, bytes, partition: partition, &report) {
        case .waiting: return .waiting
        case .refused(let error): return .refused(error)
        case .whole(let payload, let transaction):
            do {
                try accept(transaction.get(), envelope, payload: payload, trace: trace, &report)
                return .applied
            } catch let error as WireError {
                return .refusedWhole(payload, error)
            }
        }
    }

    /// Keeps a chunk that a snapshot contains because the snapshot's maker did not have the whole transaction. Accepts
    /// the transaction if all other chunks are here: this node may have begun to read in the middle of them.
    ///
    /// - Parameter isAhead: returns true if the maker had read further than this node in the partition. Nil: in any.
    ///   Chunks of two sends, which cut the transaction into different numbers, can't both be completed: those that
    ///   were read later count. If this node's come from a snapshot or the quarantine, their partition is not known,
    ///   and if the maker was ahead in one partition and behind in another, these may be the wrong ones. The
    ///   transaction then stays missing, until a check or a later snapshot brings it.
    package func take(
        chunkOfSnapshot envelope: WireEnvelope, _ bytes: [UInt8], isAhead: (Int32?) throws -> Bool
    ) throws {
        guard let chunk = envelope.chunk, try reassembly.needs(chunk, ofSnapshot: envelope, isAhead: isAhead) else {
            return
        }
        var report = ApplyReport()
        switch try take(chunk, of: envelope, bytes, trace: nil, &report) {
        case .waiting, .applied: break
        // The transaction can't be completed from the topic, which this node may have passed.
        case .refused: try sequences.leaveOpen(envelope, &report)
        case .refusedWhole(let payload, let error):
            report.add(try transactions.refuse(payload, error))
            try forget(envelope)
            try sequences.leaveOpen(envelope, &report)
        }
    }

    /// Deletes the chunks of a transaction.
    func forget(_ envelope: WireEnvelope) throws { try reassembly.forget(envelope) }

    /// Notes the clock, and how far each origin has come. Must come last in the transaction.
    package func finish() {
        sequences.finish()
        context.clock.note()
    }
}
