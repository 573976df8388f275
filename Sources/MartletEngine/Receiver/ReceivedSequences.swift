package import GRDB
import MartletCore
package import MartletReplica
package import MartletWire

/// Which transactions of each origin have arrived, for deduplication by origin and sequence, and which are missing
/// between them: gaps.
///
/// An object for one commit; ``finish()`` writes what it notes.
package final class ReceivedSequences {
    private let db: Database
    private let context: ReplicaContext
    /// The origins that have advanced, by node number.
    private var advanced: Set<Int64> = []

    package init(_ db: Database, _ context: ReplicaContext) {
        self.db = db
        self.context = context
    }

    /// Returns true if the transaction has not arrived yet. Makes its origin known.
    package func isNew(_ envelope: WireEnvelope) throws -> Bool {
        let node = try context.nodes.number(db, envelope.origin)
        guard let applied = try ReadProgress.applied(db, context, node), envelope.sequence <= applied else {
            return true
        }
        return try SequenceGaps.contains(db, context, node: node, envelope.sequence)
    }

    /// Marks the transaction as received, and records the gap before it, if any.
    func markReceived(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws {
        let node = try context.nodes.number(db, envelope.origin)
        let sequence = envelope.sequence
        // An origin that is heard of for the first time began with sequence 1.
        let applied = try ReadProgress.applied(db, context, node) ?? 0
        if sequence > applied {
            if sequence > applied + 1 {
                try SequenceGaps.add(db, node: node, applied + 1...sequence - 1)
                report.gaps.append(SequenceGap(origin: envelope.origin, first: applied + 1, last: sequence - 1))
            }
            context.positions.set(node, applied: sequence)
            advanced.insert(node)
            return
        }
        _ = try SequenceGaps.close(db, node: node, sequence)
    }

    /// Counts the transaction as missing, together with the transactions before it that have not arrived. If it arrives
    /// later, it is applied.
    func leaveOpen(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws {
        guard try isNew(envelope) else { return }
        try markReceived(envelope, &report)
        try SequenceGaps.add(
            db, node: try context.nodes.number(db, envelope.origin), envelope.sequence...envelope.sequence)
    }

    /// Notes how far each origin has come, for the end of the commit.
    func finish() {
        for node in advanced { ReadProgress.noteOrigin(context, node, at: context.now()) }
    }
}
