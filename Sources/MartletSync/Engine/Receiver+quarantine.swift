import Foundation
import GRDB
import MartletStore

/// Messages that can't be understood.
extension Receiver {
    /// - Parameter payload: of the whole that chunks made, the message being the last of them.
    func quarantine(
        _ message: IncomingMessage, payload: [UInt8]? = nil, _ error: WireError, _ report: inout ApplyReport
    ) throws {
        // What is said of a chunk says nothing of the whole.
        let ofChunk = [WireHeader.checksum, WireHeader.chunk, WireHeader.size, WireHeader.keyID, WireHeader.signature]
        var source = QuarantinedSource(
            topic: topic, key: message.key,
            headers: message.headers.filter { payload == nil || !ofChunk.contains($0.name) },
            payload: payload ?? message.payload, appended: message.isBrokerTimestamp ? message.timestamp : nil)
        source.cut = payload == nil ? message.cut : nil
        source.isUnreadable = message.problem != nil
        if engine.messageGuard.proves { source.proof = .opened }
        try quarantine(source, error, &report, position: message.position, isWhole: payload != nil)
    }

    func quarantine(_ payload: [UInt8], _ error: WireError, _ report: inout ApplyReport) throws {
        try quarantine(
            QuarantinedSource(topic: topic, key: nil, headers: [], payload: payload, appended: nil), error, &report,
            position: PartitionPosition(partition: -1, offset: -1), isWhole: true)
    }

    /// Keeps what of the transaction names no row, as a message of its own.
    func quarantine(
        _ nameless: ChangeSelection, of header: WireTransaction, _ report: inout ApplyReport
    ) throws {
        guard let entity = nameless.changes.first?.entity else { return }
        var part = header
        part.changes = nameless.changes
        let payload = try WireFormat.encode(part, as: .protobuf)
        // A snapshot may bring it once more.
        let find = try context.statement(db, "SELECT 1 FROM _martlet_quarantine WHERE partition < 0 AND payload = ?1")
        find.bind(1, blob: payload)
        guard try find.first({ _ in true }) == nil else { return }
        try quarantine(payload, .noIdentity(entity), &report)
    }

    private func quarantine(
        _ source: QuarantinedSource, _ error: WireError, _ report: inout ApplyReport, position: PartitionPosition,
        isWhole: Bool
    ) throws {
        let space = QuarantineSpace(
            db: db, context: context, limits: engine.messageGuard.configuration, topic: topic)
        try space.add(source, error, at: position, isWhole: isWhole, now: engine.now())
        if let missing = error.missingKey { engine.noteMissingKey(missing) }
        report.quarantined += 1
    }

    /// Keeps aside what is not proven to be from whom it says. What its headers say of sequences counts for nothing.
    func refuse(
        _ message: IncomingMessage, _ envelope: WireEnvelope, _ error: WireError, _ report: inout ApplyReport
    ) throws {
        if envelope.origin == context.node {
            report.own += 1
            // What others can't read counts as lost, and is sent again. Only what is not this node's is worth a word.
            if error.description == WireError.notIntact.description { return }
            if let missing = error.missingKey, !engine.messageGuard.ring.ids.contains(missing.id) { return }
            // So it is where this node sent it itself, before it sealed or signed what it sends.
            if message.header(WireHeader.keyID) == nil,
                try OwnMessages.problem(db, envelope, message.payload) == nil
            {
                return
            }
        }
        try quarantine(message, error, &report)
    }

    /// Quarantines a message whose sequence is known. The sequence stays open, as a gap: what comes under it later, and
    /// can be understood, is applied.
    func reject(
        _ message: IncomingMessage, _ envelope: WireEnvelope, payload: [UInt8]? = nil, _ error: WireError,
        _ report: inout ApplyReport
    ) throws {
        try quarantine(message, payload: payload, error, &report)
        try leaveOpen(envelope, &report)
    }

    /// Counts the transaction as missing, and nothing before it as to come.
    func leaveOpen(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws {
        guard try isNew(envelope) else { return }
        try markReceived(envelope, &report)
        try db.execute(
            sql: "INSERT OR REPLACE INTO _martlet_gaps(node, first, last) VALUES (?, ?, ?)",
            arguments: [try context.nodes.number(db, envelope.origin), envelope.sequence, envelope.sequence])
    }

    /// What came of trying a quarantined message again.
    enum Retried {
        case accepted
        /// It is a chunk, and others of its transaction are missing.
        case waiting
        /// Its transaction has come meanwhile.
        case superseded
        /// Not all of it is here.
        case notKept
        case notUnderstood(WireError)
    }

    /// Tries a message again that was quarantined. Leaves it to the caller to remove it from there.
    func retry(_ source: QuarantinedSource, _ report: inout ApplyReport) throws -> Retried {
        do {
            guard source.part == .whole else { return .notKept }
            if source.isPart {
                // Its sequence was closed when the transaction came, and was deferred.
                let transaction = try DecodedTransaction(payload: source.payload)
                if let entity = try transaction.namelessEntity() { return .notUnderstood(.noIdentity(entity)) }
                try applyTransaction(transaction, payload: source.payload, &report)
                return .accepted
            }
            let envelope = try source.envelope()
            let message = try source.opened(by: engine.messageGuard, node: context.node)
            guard envelope.origin != context.node, try isNew(envelope) else { return .superseded }
            guard message.isIntact else { return .notUnderstood(.notIntact) }
            // Earlier versions kept the whole that chunks made under the headers of the last of them.
            if let chunk = envelope.chunk, source.key != nil {
                return try take(chunk, of: envelope, message, &report) ? .accepted : .waiting
            }
            let transaction = try DecodedTransaction(payload: message.payload)
            try accept(transaction, envelope, payload: message.payload, trace: trace(of: message), &report)
            return .accepted
        } catch let error as WireError {
            return .notUnderstood(error)
        }
    }
}
