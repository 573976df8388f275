import Foundation
import GRDB
import MartletStore

/// Messages that can't be understood.
extension Receiver {
    func quarantine(
        _ message: IncomingMessage, payload: [UInt8]? = nil, _ error: WireError, _ report: inout ApplyReport
    ) throws {
        let headers = message.headers.map { "\($0.name)=\(String(decoding: $0.value, as: UTF8.self))" }.joined(
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
}
