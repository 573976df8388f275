import Foundation
import GRDB
import MartletStore

/// What a message of a check promises: all of its sender's transactions after this many are stamped later than its
/// clock.
struct Promise {
    var name: String
    var applied: Int64
    /// Up to which of the receiver's own transactions the sender has all.
    var delivered: Int64
    var clock: HybridTime
    /// Up to where the sender has collected tombstones.
    var collected: HybridTime

    init(_ message: CheckMessage, to receiver: NodeID) {
        let header = message.wire.header
        name = header.makerName
        applied = message.vector.sets[message.sender]?.applied ?? 0
        delivered = message.vector.sets[receiver]?.prefix ?? 0
        clock = HybridTime(rawValue: header.hlc)
        collected = HybridTime(rawValue: header.collected)
    }
}

/// What other nodes have promised, in the store: see ``TombstoneCut``.
struct Membership {
    let db: Database
    let context: EngineContext

    /// Takes note of what a message says of its sender: which of its transactions there were, and what its clock read
    /// then.
    func note(_ promise: Promise, from sender: NodeID) throws {
        try db.execute(
            sql: """
                INSERT INTO _martlet_members(node, sequence, hlc, heard) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT DO UPDATE SET heard = max(heard, excluded.heard),
                sequence = CASE WHEN excluded.hlc > hlc THEN excluded.sequence ELSE sequence END, hlc = max(hlc, excluded.hlc)
                """,
            arguments: [
                try context.nodes.number(db, sender, name: promise.name), promise.applied,
                Int64(bitPattern: promise.clock.rawValue), context.now(),
            ])
        let known = try context.meta(db, SyncMeta.knownCollected) ?? 0
        let collected = Int64(bitPattern: promise.collected.rawValue)
        if collected > known { try context.setMeta(db, SyncMeta.knownCollected, collected) }
    }

    /// Takes note of what it says of this node's transactions.
    func noteDelivered(_ promise: Promise, to receiver: NodeID) throws {
        let key = SyncMeta.delivered(to: try context.nodes.number(db, receiver, name: promise.name))
        // As it says now: one that was restored from a backup has less than before.
        if try context.meta(db, key) != promise.delivered { try context.setMeta(db, key, promise.delivered) }
    }

    /// All nodes but this one that ever sent anything.
    func members() throws -> [TombstoneCut.Member] {
        let vector = try VersionVector(context.origins(db))
        return try Row.fetchAll(
            db,
            sql: """
                SELECT n.uuid, m.sequence, m.hlc, max(ifnull(m.heard, 0), ifnull(o.at, 0)) AS heard
                FROM \(InternalName.nodes) AS n LEFT JOIN _martlet_members AS m ON m.node = n.id
                LEFT JOIN \(InternalName.meta) AS o ON o.key = \(ReadProgress.originKey("n.id"))
                WHERE m.node IS NOT NULL OR o.key IS NOT NULL
                """
        ).compactMap { row in
            guard let node = NodeID(bytes: row["uuid"] as Data), node != context.node else { return nil }
            var member = TombstoneCut.Member(heard: row["heard"])
            if let hlc = row["hlc"] as Int64?, let sequence = row["sequence"] as Int64? {
                member.watermark = HybridTime(rawValue: UInt64(bitPattern: hlc))
                member.isReceived = vector.sets[node].map { $0.hasAll(through: sequence) } ?? (sequence == 0)
            }
            return member
        }
    }
}
