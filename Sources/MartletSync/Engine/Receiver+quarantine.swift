import Foundation
import GRDB
import MartletStore

/// Messages that can't be understood.
extension Receiver {
    func quarantine(
        _ message: IncomingMessage, payload: [UInt8]? = nil, _ error: WireError, _ report: inout ApplyReport
    ) throws {
        // That of a chunk says nothing of the whole.
        let kept = message.headers.filter { payload == nil || $0.name != WireHeader.checksum }
        let headers = kept.map { "\($0.name)=\(String(decoding: $0.value, as: UTF8.self))" }.joined(
            separator: "\n")
        try quarantine(payload ?? message.payload, error, &report, position: message.position, headers: headers)
    }

    func quarantine(
        _ payload: [UInt8], _ error: WireError, _ report: inout ApplyReport,
        position: PartitionPosition = PartitionPosition(partition: -1, offset: -1), headers: String = ""
    ) throws {
        try db.execute(
            sql: """
                INSERT INTO _martlet_quarantine(topic, partition, offset, reason, headers, payload, since)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                topic, position.partition, position.offset, error.description, headers, Data(payload), engine.now(),
            ])
        report.quarantined += 1
    }

    /// Quarantines a message whose sequence is known. The sequence stays open, as a gap: what comes under it later, and can
    /// be understood, is applied.
    func reject(
        _ message: IncomingMessage, _ envelope: WireEnvelope, payload: [UInt8]? = nil, _ error: WireError,
        _ report: inout ApplyReport
    ) throws {
        try quarantine(message, payload: payload, error, &report)
        guard try isNew(envelope) else { return }
        try markReceived(envelope, &report)
        try db.execute(
            sql: "INSERT OR REPLACE INTO _martlet_gaps(node, first, last) VALUES (?, ?, ?)",
            arguments: [try context.nodes.number(db, envelope.origin), envelope.sequence, envelope.sequence])
    }

    /// What came of trying a quarantined message again.
    enum Retried {
        case accepted
        /// Its transaction has come meanwhile.
        case superseded
        case notUnderstood(WireError)
    }

    /// Tries a message again that was quarantined. Leaves it to the caller to remove it from there.
    func retry(_ message: QuarantinedSource, _ report: inout ApplyReport) throws -> Retried {
        do {
            if message.isPart {
                // Its sequence was closed when the transaction came, and was deferred.
                try applyTransaction(try WireFormat.decode(message.payload), payload: message.payload, &report)
                return .accepted
            }
            let envelope = try message.envelope()
            guard try isNew(envelope) else { return .superseded }
            guard message.isIntact else { return .notUnderstood(.notIntact) }
            // Chunks are quarantined as the whole that they made.
            try accept(try WireFormat.decode(message.payload), envelope, payload: message.payload, &report)
            return .accepted
        } catch let error as WireError {
            return .notUnderstood(error)
        }
    }
}

/// A message as the quarantine keeps it.
struct QuarantinedSource {
    /// True for what is left of a transaction that was deferred. It was no message of its own.
    var isPart: Bool
    var headers: [MessageHeader]
    var payload: [UInt8]

    /// - Parameter row: with the columns `partition` and `headers`, and `payload` where it is needed.
    init(_ row: Row) {
        isPart = (row["partition"] as Int64) < 0
        headers = (row["headers"] as String).split(separator: "\n").compactMap { line in
            guard let equal = line.firstIndex(of: "=") else { return nil }
            return MessageHeader(String(line[..<equal]), String(line[line.index(after: equal)...]))
        }
        payload = row.hasColumn("payload") ? row.bytes("payload") : []
    }

    var isIntact: Bool { incoming.isIntact }

    /// - Throws: ``WireError`` where the headers were what could not be understood.
    func envelope() throws(WireError) -> WireEnvelope {
        try WireEnvelope(incoming)
    }

    private var incoming: IncomingMessage {
        IncomingMessage(
            position: PartitionPosition(partition: -1, offset: -1), key: [], headers: headers, payload: payload,
            timestamp: 0, isBrokerTimestamp: false)
    }
}
