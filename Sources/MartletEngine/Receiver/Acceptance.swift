import GRDB
import MartletCore
import MartletReplica
import MartletWire

/// Accepts whole transactions of other nodes: merges each, and marks it as received, together with those that it
/// replaces; see ``/MartletAntiEntropy/Republication``.
struct Acceptance {
    private let db: Database
    private let context: ReplicaContext
    private let sequences: ReceivedSequences
    private let reassembly: Reassembly
    private let transactions: TransactionApplier
    private let maxRowBytes: Int
    private let late: LateTransactions

    init(
        _ db: Database, _ context: ReplicaContext, _ sequences: ReceivedSequences, _ reassembly: Reassembly,
        _ transactions: TransactionApplier, maxRowBytes: Int, late: LateTransactions
    ) {
        self.db = db
        self.context = context
        self.sequences = sequences
        self.reassembly = reassembly
        self.transactions = transactions
        self.maxRowBytes = maxRowBytes
        self.late = late
    }

    /// - Parameters:
    ///   - envelope: what the headers of its message say. The transaction must be new.
    ///   - trace: the trace that the message names.
    /// - Throws: ``/MartletWire/WireError`` before anything is written.
    func accept(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope, payload: TransactionPayload, trace: TraceContext?,
        _ report: inout ApplyReport
    ) throws {
        let watermark = context.collected.time
        let verdict = try TransactionVerdict.judge(
            transaction, envelope, byteCount: payload.count, maxRowBytes: maxRowBytes, watermark: watermark)
        switch verdict {
        case .acceptable: break
        case .refused(let error): throw error
        case .late:
            late.note()
            throw WireError.beforeWatermark(watermark)
        }
        let given = trace.flatMap { Self.context(of: $0, envelope) }
        report.add(try transactions.apply(transaction, payload: payload, trace: given))
        try sequences.markReceived(envelope, &report)
        try reassembly.forget(envelope)
        try settleReplaced(transaction.header, envelope.origin, &report)
    }

    /// Counts the replaced transactions as received: they were refused, or will not be taken any more when they arrive.
    private func settleReplaced(
        _ transaction: WireTransaction, _ origin: NodeID, _ report: inout ApplyReport
    ) throws {
        for sequence in transaction.restates {
            let envelope = WireEnvelope(origin: origin, sequence: Int64(sequence))
            // A pending transaction with a future clock will never be needed.
            try DeferredChanges.removeAhead(db, origin, sequence: Int64(sequence))
            guard try sequences.isNew(envelope) else { continue }
            try sequences.markReceived(envelope, &report)
            try reassembly.forget(envelope)
            try DeadLetters(db, context).remove(envelope)
        }
    }

    /// Returns the trace as the history stores it. Nil if it follows from origin and sequence.
    private static func context(of trace: TraceContext, _ envelope: WireEnvelope) -> String? {
        trace == TraceContext(origin: envelope.origin, sequence: envelope.sequence)
            ? nil : GivenTrace.context(of: trace)
    }
}
