import Foundation
import GRDB
package import MartletCore
import MartletReplica
public import MartletStore
import MartletWire

/// The result of discarding a quarantined message.
public struct DiscardedMessage: Sendable, Equatable {
    /// The message's origin. Absent if its headers don't say.
    public var origin: NodeID?
    /// The transaction that the message belongs to. Absent if its headers don't say.
    public var sequence: Int64?
    /// True if that transaction counted as missing, and no longer does.
    public var closedGap = false

    public init() {}
}

extension Store {
    /// Discards a quarantined message for good. An agent may be running.
    ///
    /// The transaction that the message names no longer counts as missing, unless another quarantined message names it
    /// too. If the transaction arrives after all, it is treated as a duplicate. This does not hold if the message is
    /// not proven to come from the origin that it names.
    /// - Returns: nil if no message has this number.
    public func discardQuarantined(_ id: Int64) throws -> DiscardedMessage? {
        try writeOwnTables { db in
            guard let source = try DeadLetters.take(db, id) else { return nil }
            var discarded = DiscardedMessage()
            guard !source.isPart, source.proof != .failed, let envelope = try? source.envelope() else {
                return discarded
            }
            discarded.origin = envelope.origin
            discarded.sequence = envelope.sequence
            guard try !DeadLetters.contains(db, envelope),
                let node = try NodeDirectory.number(db, of: envelope.origin)
            else { return discarded }
            discarded.closedGap = try SequenceGaps.close(db, node: node, envelope.sequence)
            if discarded.closedGap {
                try Chunks.delete(db, of: envelope.transaction)
            }
            return discarded
        }
    }
}
