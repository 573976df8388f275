public import Foundation
import GRDB
package import MartletCore
import MartletReplica
public import MartletStore
import MartletWire

/// A message that can't be understood, in the dead-letter queue (quarantine).
public struct QuarantinedMessage: Sendable, Equatable {
    public var id: Int64
    public var topic: String
    public var partition: Int32
    public var offset: Int64
    public var reason: String
    public var headers: [String]
    /// Size of the payload. If the entry stands for several messages, the sum of their payloads.
    public var payloadBytes: Int
    /// How many of those bytes are kept. Fewer if the payload is too large or there is no room (`security.limits`).
    public var keptBytes: Int
    /// How many messages the entry stands for: messages for which there is no room share one entry.
    public var messageCount = 1
    /// The SHA-256 of the payload, if not all of it is kept. For an entry that stands for several messages, a running
    /// digest: for each message in order, the SHA-256 of the digest so far (empty at first) and that of the payload.
    public var digest: [UInt8]?
    public var since: Date
    /// The key that would decrypt the message. Absent if no key would.
    public var missingKey: String?
    /// False if it is not proven that the message comes from the origin that its headers name.
    public var isProven = true
}

/// The result of retrying quarantined messages.
public struct QuarantineRetryReport: Sendable, Equatable {
    /// Messages that this program now understands: applied, and removed from the quarantine.
    public var applied = 0
    /// Messages that this program now understands, but whose clock is ahead: removed, and parked until it no longer is.
    public var parked = 0
    /// Messages whose transaction arrived some other way: removed.
    public var superseded = 0
    /// Chunks that this program now understands: removed, and kept until the rest of their transaction arrives.
    public var chunks = 0
    /// Messages that still can't be understood: they stay, with today's reason.
    public var kept = 0
    /// Those of the kept messages that the store doesn't have in full. The agent rereads them from the topic when it
    /// starts, if the limits (`security.limits`) then allow it.
    public var unkept = 0

    public init() {}

    mutating func add(_ other: QuarantineRetryReport) {
        applied += other.applied
        parked += other.parked
        superseded += other.superseded
        chunks += other.chunks
        kept += other.kept
        unkept += other.unkept
    }
}

/// The result of discarding a quarantined message.
public struct DiscardedMessage: Sendable, Equatable {
    /// The message's origin. Absent if its headers don't say.
    public var origin: NodeID?
    /// The transaction that the message belongs to. Absent if its headers don't say.
    public var sequence: Int64?
    /// True if that transaction counted as missing, and no longer does.
    public var closedGap = false

    public init() {}
}

extension Store {
    /// Returns the messages in the quarantine.
    public func quarantined() throws -> [QuarantinedMessage] {
        try readSync { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT id, topic, partition, offset, reason, headers, length(payload) AS size, since,
                    \(try Self.securityColumns(db)) FROM _martlet_quarantine ORDER BY id
                    """
            ).map { row in
                QuarantinedMessage(
                    id: row["id"], topic: row["topic"], partition: row["partition"], offset: row["offset"],
                    reason: row["reason"],
                    headers: (row["headers"] as String).split(separator: "\n").map(String.init),
                    payloadBytes: row["bytes"] ?? row["size"], keptBytes: row["size"], messageCount: row["messages"],
                    digest: (row["digest"] as Data?).map { Array($0) }, since: Date(milliseconds: row["since"]),
                    missingKey: row["missing_key"],
                    isProven: row["proof"] as Int64 != QuarantinedSource.Proof.failed.rawValue)
            }
        } ?? []
    }

    /// A store of an older version doesn't have these columns until an agent has opened it.
    private static func securityColumns(_ db: Database) throws -> String {
        let names = Set(try db.columns(in: "_martlet_quarantine").map(\.name))
        let columns = [
            ("proof", "0"), ("missing_key", "NULL"), ("kept", "0"), ("bytes", "NULL"), ("digest", "NULL"),
            ("messages", "1"),
        ]
        return columns.map { names.contains($0) ? $0 : "\($1) AS \($0)" }.joined(separator: ", ")
    }

    /// Discards a quarantined message for good. An agent may be running.
    ///
    /// The transaction that the message names no longer counts as missing, unless another quarantined message names it
    /// too. If the transaction arrives after all, it is treated as a duplicate. This does not hold if the message is
    /// not proven to come from the origin that it names.
    /// - Returns: nil if no message has this number.
    public func discardQuarantined(_ id: Int64) throws -> DiscardedMessage? {
        try writeOwnTables { db in
            guard try db.hasTable("_martlet_quarantine"),
                let row = try Row.fetchOne(
                    db,
                    sql: """
                        SELECT partition, headers, \(try Self.securityColumns(db)) FROM _martlet_quarantine WHERE id = ?
                        """, arguments: [id])
            else { return nil }
            try db.execute(sql: "DELETE FROM _martlet_quarantine WHERE id = ?", arguments: [id])
            let source = QuarantinedSource(row)
            var discarded = DiscardedMessage()
            guard !source.isPart, source.proof != .failed, let envelope = try? source.envelope() else {
                return discarded
            }
            discarded.origin = envelope.origin
            discarded.sequence = envelope.sequence
            guard try !isQuarantined(db, envelope),
                let node = try Int64.fetchOne(
                    db, sql: "SELECT id FROM \(InternalName.nodes) WHERE uuid = ?",
                    arguments: [Data(envelope.origin.bytes)])
            else { return discarded }
            discarded.closedGap = try SequenceGaps.close(db, node: node, envelope.sequence)
            if discarded.closedGap {
                try db.execute(
                    sql: "DELETE FROM _martlet_chunks WHERE origin = ? AND sequence = ?",
                    arguments: [Data(envelope.origin.bytes), envelope.sequence])
            }
            return discarded
        }
    }

    /// Returns true if a message that names the transaction is in the quarantine.
    private func isQuarantined(_ db: Database, _ envelope: WireEnvelope) throws -> Bool {
        if try db.columns(in: "_martlet_quarantine").contains(where: { $0.name == "sequence" }) {
            return try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM _martlet_quarantine WHERE sequence = ? AND origin = ?)",
                arguments: [envelope.sequence, Data(envelope.origin.bytes)]) ?? false
        }
        let rows = try Row.fetchCursor(
            db, sql: "SELECT partition, headers FROM _martlet_quarantine WHERE partition >= 0")
        while let row = try rows.next() {
            guard let other = try? QuarantinedSource(row).envelope() else { continue }
            if other.origin == envelope.origin, other.sequence == envelope.sequence { return true }
        }
        return false
    }
}
