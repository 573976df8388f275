import Foundation
package import GRDB
package import MartletCore
import MartletStore
package import MartletWire

extension ReplicaContext {
    /// Returns the transactions that are in the store, this node's own included. Those must be enqueued.
    package func origins(_ db: Database) throws -> [WireSnapshotOrigin] {
        try WireSnapshotOrigin.all(db, own: node, name: nodeName)
    }
}

extension WireSnapshotOrigin {
    /// Returns the enqueued transactions that are in the store.
    package static func all(_ db: Database, own node: NodeID, name: String) throws -> [WireSnapshotOrigin] {
        let gaps = Dictionary(
            grouping: try Row.fetchAll(
                db, sql: "SELECT node, first, last FROM _martlet_gaps ORDER BY node, first"),
            by: { $0["node"] as Int64 })
        var origins = try Row.fetchAll(
            db,
            sql: """
                SELECT o.node, o.applied, n.uuid, n.name FROM _martlet_origins AS o
                JOIN \(InternalName.nodes) AS n ON n.id = o.node ORDER BY o.node
                """
        ).map { row in
            var origin = WireSnapshotOrigin()
            origin.node = Data(row.bytes("uuid"))
            origin.name = row["name"] as String? ?? ""
            origin.applied = UInt64(row["applied"] as Int64)
            origin.gaps = (gaps[row["node"]] ?? []).map { gap in
                var range = WireSnapshotRange()
                range.first = UInt64(gap["first"] as Int64)
                range.last = UInt64(gap["last"] as Int64)
                return range
            }
            return origin
        }
        var own = WireSnapshotOrigin()
        own.node = Data(node.bytes)
        own.name = name
        own.applied = UInt64(max(0, try Outbox.lastSequence(db)))
        origins.removeAll { $0.node == own.node }
        if own.applied > 0 { origins.append(own) }
        return origins
    }
}
