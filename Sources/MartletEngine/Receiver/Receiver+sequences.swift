import GRDB
import MartletReplica
import MartletStore
package import MartletWire

/// Tracks which transactions of an origin have arrived.
extension Receiver {
    package func applied(_ node: Int64) throws -> Int64? {
        if let applied = context.positions.applied[node] { return applied }
        let find = try kept(&context.progress.findOrigin, db, ReadProgress.findOrigin)
        find.bind(1, node)
        let applied = try find.first { $0.integer(0) }
        if let applied { context.positions.applied[node] = applied }
        return applied
    }

    package func isNew(_ envelope: WireEnvelope) throws -> Bool {
        let node = try context.nodes.number(db, envelope.origin)
        guard let applied = try applied(node), envelope.sequence <= applied else { return true }
        let find = try context.statement(
            db, "SELECT 1 FROM _martlet_gaps WHERE node = ?1 AND first <= ?2 AND last >= ?2")
        find.bind(1, node)
        find.bind(2, envelope.sequence)
        return try find.first { _ in true } ?? false
    }

    /// Marks the transaction as received, and records the gap before it, if any.
    package func markReceived(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws {
        let node = try context.nodes.number(db, envelope.origin)
        let sequence = envelope.sequence
        // An origin that is heard of for the first time began with sequence 1.
        let applied = try applied(node) ?? 0
        if sequence > applied {
            if sequence > applied + 1 {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO _martlet_gaps(node, first, last) VALUES (?, ?, ?)",
                    arguments: [node, applied + 1, sequence - 1])
                report.gaps.append(SequenceGap(origin: envelope.origin, first: applied + 1, last: sequence - 1))
            }
            context.positions.applied[node] = sequence
            origins.changed.insert(node)
            return
        }
        _ = try SequenceGaps.close(db, node: node, sequence)
    }
}
