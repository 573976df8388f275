import Foundation
package import GRDB
package import MartletCore
import MartletStore

/// The state that other nodes reported in checks: the only code that reads and writes `_martlet_members`, and the
/// values in `_martlet_meta` that say how many of this node's transactions each of them has.
package enum Members {
    /// Stores how many transactions a node had, and the state of its clock at that time.
    ///
    /// - Parameters:
    ///   - node: the node's number.
    ///   - heard: when the report arrived, in milliseconds since 1970.
    package static func note(
        _ db: Database, _ node: Int64, sequence: Int64, clock: HybridTime, heard: Int64
    ) throws {
        try db.execute(
            sql: """
                INSERT INTO _martlet_members(node, sequence, hlc, heard) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT DO UPDATE SET heard = max(heard, excluded.heard),
                sequence = CASE WHEN excluded.hlc > hlc THEN excluded.sequence ELSE sequence END,
                hlc = max(hlc, excluded.hlc)
                """,
            arguments: [node, sequence, clock.stored, heard])
    }

    /// Stores how many of this node's transactions a node has.
    package static func noteDelivered(
        _ db: Database, _ meta: MetaValues, to node: Int64, _ sequence: Int64
    ) throws {
        let key = SyncMeta.delivered(to: node)
        // Overwritten even with less: a node that was restored from a backup has less than before.
        if try meta(db, key) != sequence { try meta.set(db, key, sequence) }
    }

    /// Forgets how many of this node's transactions other nodes have.
    package static func forgetDelivered(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM \(InternalName.meta) WHERE key GLOB '\(SyncMeta.delivered)*'")
    }

    /// The last report of a node, if any.
    package struct Member {
        package var node: NodeID
        /// How many transactions it had when its clock was at ``clock``.
        package var sequence: Int64?
        package var clock: HybridTime?
        /// When it was last heard of, in milliseconds since 1970.
        package var heard: Int64
    }

    /// Returns all nodes that ever sent anything.
    package static func all(_ db: Database) throws -> [Member] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT n.uuid, m.sequence, m.hlc, max(ifnull(m.heard, 0), ifnull(o.at, 0)) AS heard
                FROM \(InternalName.nodes) AS n LEFT JOIN _martlet_members AS m ON m.node = n.id
                LEFT JOIN \(InternalName.meta) AS o ON o.key = \(ReadProgress.originKey("n.id"))
                WHERE m.node IS NOT NULL OR o.key IS NOT NULL
                """
        ).compactMap { row in
            guard let node = NodeID(bytes: row["uuid"] as Data) else { return nil }
            return Member(
                node: node, sequence: row["sequence"],
                clock: (row["hlc"] as Int64?).map { HybridTime(stored: $0) }, heard: row["heard"])
        }
    }

    /// How much of this node's transactions a node has.
    package struct Recipient {
        package var id: NodeID
        package var name: String?
        /// The sequence up to which it has them, by its last report. Nil if it has sent none.
        package var delivered: Int64?
        /// When it was last heard of, in milliseconds since 1970; 0 if it never was.
        package var heard: Int64
    }

    /// Returns all nodes that this store has heard of, this one included.
    package static func recipients(_ db: Database) throws -> [Recipient] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT n.uuid, n.name, d.value AS delivered, max(ifnull(m.heard, 0), ifnull(o.at, 0)) AS heard
                FROM \(InternalName.nodes) AS n LEFT JOIN _martlet_members AS m ON m.node = n.id
                LEFT JOIN \(InternalName.meta) AS o ON o.key = \(ReadProgress.originKey("n.id"))
                LEFT JOIN \(InternalName.meta) AS d ON d.key = '\(SyncMeta.delivered)' || n.id ORDER BY n.id
                """
        ).compactMap { row in
            NodeID(bytes: row["uuid"] as Data).map {
                Recipient(id: $0, name: row["name"], delivered: row["delivered"], heard: row["heard"])
            }
        }
    }
}
