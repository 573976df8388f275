import Foundation
import GRDB
import MartletStore

/// Which transactions are in what a node has, by origin. Pure.
struct VersionVector: Equatable {
    var sets: [NodeID: SequenceSet] = [:]

    init() {}

    init(_ origins: [WireSnapshotOrigin]) throws(StoreError) {
        for origin in origins {
            guard let node = NodeID(bytes: origin.node) else { throw SnapshotFormat.damaged("a node ID is not a UUID") }
            sets[node] = try SequenceSet(origin)
        }
        guard sets.values.reduce(0, { $0 + $1.gaps.count }) <= WireBounds.maxGaps else {
            throw SnapshotFormat.damaged("it has more gaps than \(WireBounds.maxGaps)")
        }
    }

    /// True where all transactions of the origin that the other has are here, too.
    func covers(_ other: VersionVector, of node: NodeID) -> Bool {
        guard let theirs = other.sets[node] else { return true }
        let mine = sets[node] ?? SequenceSet(applied: 0, gaps: [])
        return mine.union(theirs).ranges == mine.ranges
    }

    /// True where all transactions that the other has are here, too.
    func covers(_ other: VersionVector) -> Bool { other.sets.keys.allSatisfy { covers(other, of: $0) } }

    /// How many transactions of the origin the other has that are not here.
    func missingCount(_ other: VersionVector, of node: NodeID) -> Int64 {
        let mine = sets[node] ?? SequenceSet(applied: 0, gaps: [])
        let all = other.sets[node].map { mine.union($0) } ?? mine
        func count(_ set: SequenceSet) -> Int64 { set.ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound + 1 } }
        return count(all) - count(mine)
    }
}

extension EngineContext {
    /// Which transactions are in the store as it is, this node's own included. They must be registered.
    func origins(_ db: Database) throws -> [WireSnapshotOrigin] {
        try WireSnapshotOrigin.all(db, own: node, name: nodeName)
    }
}

extension WireSnapshotOrigin {
    /// Which transactions are in the store, as far as they are registered.
    static func all(_ db: Database, own node: NodeID, name: String) throws -> [WireSnapshotOrigin] {
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
        own.applied = UInt64(max(0, (try Meta.integer(db, SyncMeta.nextSequence) ?? 1) - 1))
        origins.removeAll { $0.node == own.node }
        if own.applied > 0 { origins.append(own) }
        return origins
    }
}

extension SyncEngine {
    /// Which transactions are here, as far as they are registered.
    func knownVector() throws -> VersionVector {
        try read { db in
            try VersionVector(WireSnapshotOrigin.all(db, own: node, name: ""))
        }
    }

    /// True where all transactions of others that a snapshot has are here.
    func hasAll(of header: WireSnapshotHeader) throws -> Bool {
        var theirs = try VersionVector(header.origins)
        theirs.sets[node] = nil
        return try knownVector().covers(theirs)
    }
}
