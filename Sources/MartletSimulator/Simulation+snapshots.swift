import Foundation
import GRDB
import MartletStore
import MartletSync

/// The transactions of one origin that a snapshot contains.
struct Coverage {
    var applied: Int64
    var gaps: [ClosedRange<Int64>]

    func has(_ sequence: Int64) -> Bool { sequence <= applied && !gaps.contains { $0.contains(sequence) } }
}

extension Simulation {
    func snapshot(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard try isSure(node) else { return }
        if plan.faults.contains(.restore) {
            // Transactions that only a snapshot has, of a store that is replaced later, would be on some nodes but not
            // on others.
            let status = try SyncStatus.read(open.store)
            guard status.unpublished == 0, status.lastSequence == status.acknowledged else { return }
        }
        // Loading is interrupted, but not the making.
        let losesConnections = node.snapshotLink.losesConnections
        let reorders = node.snapshotLink.reorders
        (node.snapshotLink.losesConnections, node.snapshotLink.reorders) = (false, false)
        defer { (node.snapshotLink.losesConnections, node.snapshotLink.reorders) = (losesConnections, reorders) }
        do {
            let made = try open.snapshots.make(UUIDs.make(random.bytes(16)))
            note("makes a snapshot of \(made.messageCount) messages")
        } catch let error as BusError where node.snapshotLink.isCut {
            return note("can't make a snapshot (\(error.code.rawValue))")
        }
        try open.other.read { db in
            for row in try Row.fetchAll(
                db,
                sql: """
                    SELECT n.id, n.uuid, o.applied FROM _martlet_origins AS o JOIN _martlet_nodes AS n ON n.id = o.node
                    """)
            {
                let gaps = try Row.fetchAll(
                    db, sql: "SELECT first, last FROM _martlet_gaps WHERE node = ?", arguments: [row["id"] as Int64]
                ).map { ($0["first"] as Int64)...($0["last"] as Int64) }
                let bytes: Data = row["uuid"]
                guard let origin = NodeID(bytes: bytes) else { continue }
                covered[origin.description, default: []].append(Coverage(applied: row["applied"], gaps: gaps))
            }
            let next = try Int64.fetchOne(db, sql: "SELECT value FROM _martlet_meta WHERE key = 'next_sequence'") ?? 1
            covered[node.id.uuidString, default: []].append(Coverage(applied: next - 1, gaps: []))
        }
    }

    /// Makes the snapshot that nodes ask for once faults have stopped, on the node that has read whatever the topic has
    /// dropped.
    func replaceLostSnapshots() throws {
        guard plan.faults.contains(.lostSnapshots) else { return }
        for _ in 0..<3 {
            try exchangeAll()
            var waiting: [String] = []
            for node in nodes {
                try alive(node) { if try start(node).engine.needsSnapshot() { waiting.append(node.name) } }
            }
            guard !waiting.isEmpty else { return }
            note("\(waiting.joined(separator: ", ")) ask for a snapshot")
            try alive(nodes[0]) { try snapshot(nodes[0]) }
        }
        throw SimulationFailure(.held, "nodes keep asking for a snapshot, although there is a new one")
    }

    func isCovered(_ message: IncomingMessage) -> Bool {
        func header(_ name: String) -> String? { message.header(name).map { String(decoding: $0, as: UTF8.self) } }
        guard let origin = header(PublishedHeader.origin),
            let sequence = header(PublishedHeader.sequence).flatMap({ Int64($0) })
        else { return false }
        return covered[origin]?.contains { $0.has(sequence) } ?? false
    }

    /// Returns true while a node loads a snapshot: its rows arrive in parts.
    func isLoading(_ db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM _martlet_snapshots WHERE finished IS NULL)") ?? false
    }
}
