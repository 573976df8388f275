import GRDB
import MartletBus
import MartletCore
import MartletReplica
import MartletWire

/// Receives messages in the topic's order, within one commit: asks ``MessageVerdict`` what becomes of each, and hands
/// it to the type that writes it. Records the read offset of each partition.
struct Receiver {
    private let context: ReplicaContext
    private let traceHeaders: TraceHeaders
    private let intake: Intake
    private var offsets: ReadOffsets
    private var own: OwnReadback

    /// - Parameter assembled: the transaction that was assembled from chunks before the SQLite transaction began.
    init(
        _ inbound: Inbound, _ db: Database, _ context: ReplicaContext, topic: String,
        assembled: AssembledTransaction? = nil
    ) {
        self.context = context
        traceHeaders = inbound.traceHeaders
        intake = Intake(inbound, db, context, topic: topic, assembled: assembled)
        offsets = ReadOffsets(db, context, topic: topic)
        own = OwnReadback(db, context, path: inbound.path, inbound.messageGuard, intake.reassembly)
    }

    mutating func receive(_ decoded: DecodedMessage, _ report: inout ApplyReport) throws {
        let message = decoded.message
        let partition = message.position.partition
        let sequences = intake.sequences
        let verdict = try MessageVerdict.judge(
            decoded, stored: offsets.stored(partition), isRewound: report.rewound.contains(partition),
            node: context.node, isNew: { try sequences.isNew($0) })
        switch verdict {
        case .seen: return
        // The message's offset isn't stored, until the partition is reread. Otherwise a crash in between would lose the
        // fact that it has to be.
        case .rewound: return report.noteRewound(partition)
        case .probe: break
        case .unreadable(let error): try intake.quarantine.add(message, error, &report)
        case .unproven(let envelope, let error): try refuse(decoded.source, envelope, error, &report)
        case .own(let envelope): try own.take(decoded, envelope, &report)
        case .duplicate: report.duplicates += 1
        case .rejected(let envelope, let error): try intake.reject(message, envelope, error, &report)
        case .chunk(let chunk, let envelope): try take(chunk, of: envelope, message, &report)
        case .transaction(let transaction, let envelope): try accept(transaction, envelope, message, &report)
        }
        offsets.note(decoded)
    }

    /// Records the offsets, the clock, and how far each origin has come. Must come last in the transaction.
    func finish(_ report: ApplyReport) {
        offsets.finish()
        intake.finish()
        guard let offset = report.clockOffset else { return }
        context.notes.add(SyncMeta.clockOffsetLow, offset.lowerBound)
        context.notes.add(SyncMeta.clockOffsetHigh, offset.upperBound)
    }

    /// Quarantines a message that is not proven to come from the origin that it names. Its sequence numbers are
    /// ignored.
    private func refuse(
        _ message: IncomingMessage, _ envelope: WireEnvelope, _ error: WireError, _ report: inout ApplyReport
    ) throws {
        if envelope.origin == context.node {
            report.own += 1
            guard try own.isForeign(message, envelope, error) else { return }
        }
        try intake.quarantine.add(message, error, &report)
    }

    private func accept(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope, _ message: IncomingMessage,
        _ report: inout ApplyReport
    ) throws {
        let payload = TransactionPayload.whole(message.payload)
        do {
            let trace = traceHeaders.trace(of: message)
            try intake.accept(transaction, envelope, payload: payload, trace: trace, &report)
        } catch let error as WireError {
            try intake.reject(message, envelope, payload: payload, error, &report)
        }
    }

    private func take(
        _ chunk: (index: Int, count: Int), of envelope: WireEnvelope, _ message: IncomingMessage,
        _ report: inout ApplyReport
    ) throws {
        let trace = traceHeaders.trace(of: message)
        let partition = message.position.partition
        switch try intake.take(chunk, of: envelope, message.payload, partition: partition, trace: trace, &report) {
        case .waiting, .applied: break
        case .refused(let error): try intake.reject(message, envelope, error, &report)
        case .refusedWhole(let payload, let error):
            try intake.reject(message, envelope, payload: payload, error, &report)
            try intake.forget(envelope)
        }
    }
}
