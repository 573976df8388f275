public import Foundation
import GRDB
public import MartletStore

/// A message that can't be understood.
public struct QuarantinedMessage: Sendable, Equatable {
    public var id: Int64
    public var topic: String
    public var partition: Int32
    public var offset: Int64
    public var reason: String
    public var headers: [String]
    public var payloadBytes: Int
    public var since: Date
    /// The key that would open it. Absent where no key would.
    public var missingKey: String?
    /// False where it is not proven to be from whom its headers say.
    public var isProven = true
}

/// What trying quarantined messages again came to.
public struct QuarantineRetryReport: Sendable, Equatable {
    /// Messages that this program understands: applied, and removed from the quarantine.
    public var applied = 0
    /// Messages that this program understands, and whose clock is ahead: removed, and parked until it no longer is.
    public var parked = 0
    /// Messages whose transaction had come some other way: removed.
    public var superseded = 0
    /// Chunks that this program understands: removed, and kept until the rest of their transaction is here.
    public var chunks = 0
    /// Messages that still can't be understood: they stay, with the reason of today.
    public var kept = 0

    public init() {}

    mutating func add(_ other: QuarantineRetryReport) {
        applied += other.applied
        parked += other.parked
        superseded += other.superseded
        chunks += other.chunks
        kept += other.kept
    }
}

/// What throwing a quarantined message away came to.
public struct DiscardedMessage: Sendable, Equatable {
    /// Who wrote it. Absent where its headers don't say.
    public var origin: NodeID?
    /// The transaction that it names. Absent where its headers name none.
    public var sequence: Int64?
    /// True where that transaction counted as missing, and no longer does.
    public var closedGap = false

    public init() {}
}

extension Store {
    /// Messages that can't be understood.
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
                    payloadBytes: row["size"], since: Date(milliseconds: row["since"]),
                    missingKey: row["missing_key"],
                    isProven: row["proof"] as Int64 != QuarantinedSource.Proof.failed.rawValue)
            }
        } ?? []
    }

    /// A store that no agent has opened since it was of an older version does not have them yet.
    private static func securityColumns(_ db: Database) throws -> String {
        try db.columns(in: "_martlet_quarantine").contains { $0.name == "proof" }
            ? "proof, missing_key" : "0 AS proof, NULL AS missing_key"
    }

    /// Throws a quarantined message away, for good. An agent may run meanwhile.
    ///
    /// The transaction that it names counts as missing no longer, unless another quarantined message names it too: should
    /// it come after all, it is taken for a duplicate. Not so where the message is not proven to be from whom it says.
    /// - Returns: nil where there is none of that number.
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

    /// True where a message that names the transaction is in the quarantine.
    private func isQuarantined(_ db: Database, _ envelope: WireEnvelope) throws -> Bool {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT partition, headers FROM _martlet_quarantine WHERE partition >= 0")
        while let row = try rows.next() {
            guard let other = try? QuarantinedSource(row).envelope() else { continue }
            if other.origin == envelope.origin, other.sequence == envelope.sequence { return true }
        }
        return false
    }
}
