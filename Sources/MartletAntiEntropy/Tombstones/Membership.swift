import Foundation
import GRDB
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// The promise in a check message: all of its sender's transactions after this many have a later stamp than its clock.
struct Promise {
    var name: String
    var applied: Int64
    /// The sequence up to which the sender has all of the receiver's own transactions.
    var delivered: Int64
    var clock: HybridTime
    /// The watermark up to which the sender has collected tombstones.
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

/// The promises of other nodes, in the store: see ``/MartletMerge/TombstoneCut``.
struct Membership {
    let db: Database
    let context: EngineContext

    /// Stores what a message says about its sender: how many transactions it had, and the state of its clock at that
    /// time.
    func note(_ promise: Promise, from sender: NodeID) throws {
        try db.execute(
            sql: """
                INSERT INTO _martlet_members(node, sequence, hlc, heard) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT DO UPDATE SET heard = max(heard, excluded.heard),
                sequence = CASE WHEN excluded.hlc > hlc THEN excluded.sequence ELSE sequence END,
                hlc = max(hlc, excluded.hlc)
                """,
            arguments: [
                try context.nodes.number(db, sender, name: promise.name), promise.applied,
                Int64(bitPattern: promise.clock.rawValue), context.now(),
            ])
        let known = try context.meta(db, SyncMeta.knownCollected) ?? 0
        let collected = Int64(bitPattern: promise.collected.rawValue)
        if collected > known { try context.setMeta(db, SyncMeta.knownCollected, collected) }
    }

    /// Stores how many of this node's transactions the sender has.
    func noteDelivered(_ promise: Promise, to receiver: NodeID) throws {
        let key = SyncMeta.delivered(to: try context.nodes.number(db, receiver, name: promise.name))
        // Overwritten even with less: a node that was restored from a backup has less than before.
        if try context.meta(db, key) != promise.delivered { try context.setMeta(db, key, promise.delivered) }
    }

    /// Returns all other nodes that ever sent anything.
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
