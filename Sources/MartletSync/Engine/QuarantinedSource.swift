import Foundation
import GRDB
import MartletStore

/// A message as the quarantine keeps it.
struct QuarantinedSource {
    /// Whether it was proven that the message is from whom it says. Part of the on-disk format.
    enum Proof: Int64 {
        /// Nothing was asked for, or it was proven; it is as it came, and is opened again.
        case asItCame = 0
        /// It was opened: what is kept is what was in it.
        case opened = 1
        /// It was not proven.
        case failed = 2
    }

    /// True for what is left of a transaction that was deferred. It was no message of its own.
    var isPart = false
    var topic: String
    /// Absent in what earlier versions kept.
    var key: [UInt8]?
    var headers: [MessageHeader]
    var payload: [UInt8]
    /// Where the payload is only the beginning.
    var cut: PayloadCut?
    /// True where the bus could not read it.
    var isUnreadable = false
    /// When the broker says that it was appended. Absent where the producer said so.
    var appended: Int64?
    var proof = Proof.asItCame
    /// How much of it is here.
    var part = KeptPart.whole

    static let columns = "topic, partition, headers, payload, key, appended, proof, kept"

    init(topic: String, key: [UInt8]?, headers: [MessageHeader], payload: [UInt8], appended: Int64?) {
        self.topic = topic
        self.key = key
        self.headers = headers
        self.payload = payload
        self.appended = appended
    }

    /// - Parameter row: with the columns `partition` and `headers`, and ``columns`` where it is opened.
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

    /// - Throws: ``WireError`` where the headers were what could not be understood.
    func envelope() throws(WireError) -> WireEnvelope {
        try WireEnvelope(incoming)
    }

    /// - Throws: ``WireError`` where it can't be opened.
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
