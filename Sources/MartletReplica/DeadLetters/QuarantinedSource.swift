import Foundation
package import GRDB
package import MartletBus
package import MartletCore
import MartletStore
package import MartletWire

/// A message as the quarantine keeps it.
package struct QuarantinedSource {
    /// Whether the message was proven to come from the origin that it names. Part of the on-disk format.
    package enum Proof: Int64 {
        /// No proof was required, or it was given. The message is kept as it arrived, and is decrypted again.
        case asItCame = 0
        /// The message was decrypted, and its contents are kept.
        case opened = 1
        /// The proof failed.
        case failed = 2
    }

    /// True for a part of a deferred transaction, which was no message of its own.
    package var isPart = false
    package var topic: String
    /// Where the message was on the topic. Negative if that is not known, or if it was no message of its own.
    package var position = PartitionPosition(partition: -1, offset: -1)
    /// Absent in messages that earlier versions kept.
    package var key: [UInt8]?
    package var headers: [MessageHeader]
    /// Empty if the payload is kept in parts.
    package var payload: [UInt8]
    /// The payload that is kept in parts.
    private var parts: (any StoredPayload)?
    /// Set if the payload is only the beginning.
    package var cut: PayloadCut?
    /// True if the bus could not read the message.
    package var isUnreadable = false
    /// When the broker appended the message. Absent if the timestamp is the producer's.
    package var appended: Int64?
    package var proof = Proof.asItCame
    /// How much of the message is kept.
    package var part = KeptPart.whole

    package static let columns = "topic, partition, offset, headers, payload, key, appended, proof, kept"

    package init(topic: String, key: [UInt8]?, headers: [MessageHeader], payload: [UInt8], appended: Int64?) {
        self.topic = topic
        self.key = key
        self.headers = headers
        self.payload = payload
        self.appended = appended
    }

    /// - Parameter row: needs the columns `partition` and `headers`, and those in ``columns`` if the message is to be
    ///   opened.
    package init(_ row: Row) {
        let lines = (row["headers"] as String).split(separator: "\n")
        let headers = lines.compactMap { line -> MessageHeader? in
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 ? MessageHeader(String(parts[0]), String(parts[1])) : nil
        }
        self.init(
            topic: row.hasColumn("topic") ? row["topic"] : "", key: nil, headers: headers,
            payload: row.hasColumn("payload") ? row.bytes("payload") : [],
            appended: row.hasColumn("appended") ? row["appended"] : nil)
        isPart = (row["partition"] as Int64) < 0
        if row.hasColumn("offset") { position = PartitionPosition(partition: row["partition"], offset: row["offset"]) }
        if row.hasColumn("key"), let bytes = row["key"] as Data? { key = Array(bytes) }
        if row.hasColumn("kept") { part = KeptPart(rawValue: row["kept"]) ?? .whole }
        if row.hasColumn("proof") { proof = Proof(rawValue: row["proof"]) ?? .asItCame }
    }

    /// The payload, wherever it is.
    package var contents: TransactionPayload {
        get { parts.map { .stored($0) } ?? .whole(payload) }
        set {
            switch newValue {
            case .whole(let bytes): (payload, parts) = (bytes, nil)
            case .stored(let stored): (payload, parts) = ([], stored)
            }
        }
    }

    package var isIntact: Bool { incoming.isIntact }

    /// - Throws: ``/MartletWire/WireError`` if the headers themselves can't be understood.
    package func envelope() throws(WireError) -> WireEnvelope {
        try WireEnvelope(incoming)
    }

    /// - Returns: the message, without a payload that is kept in parts. That one was opened when it was assembled.
    /// - Throws: ``/MartletWire/WireError`` if the message can't be opened.
    package func opened(by messageGuard: MessageGuard, node: NodeID) throws(WireError) -> IncomingMessage {
        if proof == .opened { return incoming }
        return try messageGuard.open(incoming, topic: topic, node: node)
    }

    private var incoming: IncomingMessage {
        IncomingMessage(
            position: position, key: key ?? [], headers: headers, payload: payload,
            timestamp: appended ?? 0, isBrokerTimestamp: appended != nil)
    }
}
