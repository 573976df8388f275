import Foundation
import GRDB
import MartletStore

/// A message as the quarantine keeps it.
struct QuarantinedSource {
    /// Whether the message was proven to come from the origin that it names. Part of the on-disk format.
    enum Proof: Int64 {
        /// No proof was required, or it was given. The message is kept as it arrived, and is decrypted again.
        case asItCame = 0
        /// The message was decrypted, and its contents are kept.
        case opened = 1
        /// The proof failed.
        case failed = 2
    }

    /// True for a part of a deferred transaction, which was no message of its own.
    var isPart = false
    var topic: String
    /// Absent in messages that earlier versions kept.
    var key: [UInt8]?
    var headers: [MessageHeader]
    var payload: [UInt8]
    /// Set if the payload is only the beginning.
    var cut: PayloadCut?
    /// True if the bus could not read the message.
    var isUnreadable = false
    /// When the broker appended the message. Absent if the timestamp is the producer's.
    var appended: Int64?
    var proof = Proof.asItCame
    /// How much of the message is kept.
    var part = KeptPart.whole

    static let columns = "topic, partition, headers, payload, key, appended, proof, kept"

    init(topic: String, key: [UInt8]?, headers: [MessageHeader], payload: [UInt8], appended: Int64?) {
        self.topic = topic
        self.key = key
        self.headers = headers
        self.payload = payload
        self.appended = appended
    }

    /// - Parameter row: needs the columns `partition` and `headers`, and those in ``columns`` if the message is to be
    ///   opened.
    init(_ row: Row) {
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
        if row.hasColumn("key"), let bytes = row["key"] as Data? { key = Array(bytes) }
        if row.hasColumn("kept") { part = KeptPart(rawValue: row["kept"]) ?? .whole }
        if row.hasColumn("proof") { proof = Proof(rawValue: row["proof"]) ?? .asItCame }
    }

    var isIntact: Bool { incoming.isIntact }

    /// - Throws: ``WireError`` if the headers themselves can't be understood.
    func envelope() throws(WireError) -> WireEnvelope {
        try WireEnvelope(incoming)
    }

    /// - Throws: ``WireError`` if the message can't be opened.
    func opened(by messageGuard: MessageGuard, node: NodeID) throws(WireError) -> IncomingMessage {
        if proof == .opened { return incoming }
        return try messageGuard.open(incoming, topic: topic, node: node)
    }

    private var incoming: IncomingMessage {
        IncomingMessage(
            position: PartitionPosition(partition: -1, offset: -1), key: key ?? [], headers: headers, payload: payload,
            timestamp: appended ?? 0, isBrokerTimestamp: appended != nil)
    }
}
