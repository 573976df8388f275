import Foundation
import GRDB
package import MartletBus
package import MartletReplica
import MartletStore
package import MartletWire

/// The part of the receiver for messages that can't be understood.
extension Receiver {
    /// - Parameter payload: the assembled payload, if the message is the last of its chunks.
    package func quarantine(
        _ message: IncomingMessage, payload: [UInt8]? = nil, _ error: WireError, _ report: inout ApplyReport
    ) throws {
        let source = source(of: message, payload: payload, topic: topic)
        try quarantine(source, error, &report, position: message.position, isWhole: payload != nil)
    }

    private func source(of message: IncomingMessage, payload: [UInt8]?, topic: String) -> QuarantinedSource {
        // These headers describe the chunk, not the whole.
        let ofChunk = [WireHeader.checksum, WireHeader.chunk, WireHeader.size, WireHeader.keyID, WireHeader.signature]
        var source = QuarantinedSource(
            topic: topic, key: message.key,
            headers: message.headers.filter { payload == nil || !ofChunk.contains($0.name) },
            payload: payload ?? message.payload, appended: message.isBrokerTimestamp ? message.timestamp : nil)
        source.cut = payload == nil ? message.cut : nil
        source.isUnreadable = message.problem != nil
        if engine.messageGuard.proves { source.proof = .opened }
        return source
    }

    private func quarantine(
        _ source: QuarantinedSource, _ error: WireError, _ report: inout ApplyReport, position: PartitionPosition,
        isWhole: Bool
    ) throws {
        let space = QuarantineSpace(db, context, engine.messageGuard.configuration, topic: source.topic)
        try space.add(source, error, at: position, isWhole: isWhole)
        if let missing = error.missingKey { engine.quarantine.noteMissingKey(missing) }
        report.quarantined += 1
    }

    /// Quarantines a message that is not proven to come from the origin that it names. Its sequence numbers are
    /// ignored.
    package func refuse(
        _ message: IncomingMessage, _ envelope: WireEnvelope, _ error: WireError, _ report: inout ApplyReport
    ) throws {
        if envelope.origin == context.node {
            report.own += 1
            // A message of this node that other nodes can't read counts as lost, and is sent again. Only a message that
            // this node did not write is worth reporting.
            if error.description == WireError.notIntact.description { return }
            if let missing = error.missingKey, !engine.messageGuard.ring.ids.contains(missing.id) { return }
            // This node may have sent the message itself, before it began to encrypt or sign.
            if message.header(WireHeader.keyID) == nil,
                try OwnMessages.problem(db, envelope, message.payload) == nil
            {
                return
            }
        }
        try quarantine(message, error, &report)
    }

    /// Quarantines a message whose sequence is known. The sequence stays open, as a gap: if a message that can be
    /// understood arrives for it later, that is applied.
    package func reject(
        _ message: IncomingMessage, _ envelope: WireEnvelope, payload: [UInt8]? = nil, _ error: WireError,
        _ report: inout ApplyReport
    ) throws {
        try quarantine(message, payload: payload, error, &report)
        try leaveOpen(envelope, &report)
    }

    /// Counts the transaction as missing, together with the transactions before it that have not arrived.
    package func leaveOpen(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws {
        guard try isNew(envelope) else { return }
        try markReceived(envelope, &report)
        try SequenceGaps.add(
            db, node: try context.nodes.number(db, envelope.origin), envelope.sequence...envelope.sequence)
    }

    /// The outcome of retrying a quarantined message.
    package enum Retried {
        case accepted
        /// The message is a chunk, and other chunks of its transaction are missing.
        case waiting
        /// Its transaction has arrived meanwhile.
        case superseded
        /// The store doesn't have the whole message.
        case notKept
        /// The message was the last chunk of a transaction that is refused. The quarantine has the whole one now.
        case assembled
        case notUnderstood(WireError)
    }

    /// Retries a quarantined message. The caller removes it from the quarantine.
    package func retry(_ source: QuarantinedSource, _ report: inout ApplyReport) throws -> Retried {
        do {
            guard source.part == .whole else { return .notKept }
            if source.isPart {
                // The sequence was closed when the transaction arrived and was deferred.
                let transaction = try DecodedTransaction(payload: source.payload)
                if let entity = try transaction.entityWithoutIdentity() { return .notUnderstood(.noIdentity(entity)) }
                report.add(try transactions.apply(transaction, payload: source.payload))
                return .accepted
            }
            let envelope = try source.envelope()
            let message = try source.opened(by: engine.messageGuard, node: context.node)
            guard envelope.origin != context.node, try isNew(envelope) else { return .superseded }
            guard message.isIntact else { return .notUnderstood(.notIntact) }
            // Earlier versions kept the assembled payload under the headers of its last chunk.
            if let chunk = envelope.chunk, source.key != nil {
                switch try taken(chunk, of: envelope, message, &report) {
                case .waiting: return .waiting
                case .applied: return .accepted
                case .refused(let error): return .notUnderstood(error)
                case .refusedWhole(let payload, let error):
                    let whole = self.source(of: message, payload: payload, topic: source.topic)
                    try quarantine(whole, error, &report, position: source.position, isWhole: true)
                    return .assembled
                }
            }
            let transaction = try DecodedTransaction(payload: message.payload)
            try accept(transaction, envelope, payload: message.payload, trace: trace(of: message), &report)
            return .accepted
        } catch let error as WireError {
            return .notUnderstood(error)
        }
    }
}
