import GRDB
import MartletReplica
import MartletStore
package import MartletWire

/// Tracks which transactions of an origin have arrived.
extension Receiver {
    package func applied(_ node: Int64) throws -> Int64? {
        try ReadProgress.applied(db, context, node)
    }

    package func isNew(_ envelope: WireEnvelope) throws -> Bool {
        let node = try context.nodes.number(db, envelope.origin)
        guard let applied = try applied(node), envelope.sequence <= applied else { return true }
        return try SequenceGaps.contains(db, context, node: node, envelope.sequence)
    }

    /// Marks the transaction as received, and records the gap before it, if any.
    package func markReceived(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws {
        let node = try context.nodes.number(db, envelope.origin)
        let sequence = envelope.sequence
        // An origin that is heard of for the first time began with sequence 1.
        let applied = try applied(node) ?? 0
        if sequence > applied {
            if sequence > applied + 1 {
                try SequenceGaps.add(db, node: node, applied + 1...sequence - 1)
                report.gaps.append(SequenceGap(origin: envelope.origin, first: applied + 1, last: sequence - 1))
            }
            context.positions.set(node, applied: sequence)
            origins.changed.insert(node)
            return
        }
        _ = try SequenceGaps.close(db, node: node, sequence)
    }
}
