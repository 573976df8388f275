import Foundation
package import GRDB
import MartletBus
package import MartletCore
package import MartletReplica
import MartletStore
package import MartletWire

extension WireError {
    /// Returns the error for a transaction that arrived after the tombstones of its time were collected.
    package static func beforeWatermark(_ cut: HybridTime) -> WireError {
        let date = Date(milliseconds: cut.milliseconds).formatted(.iso8601)
        return WireError(
            "It was written before \(date), and the tombstones of that time were collected here: its author was away "
                + "too long. The author republishes what still counts, as soon as it hears of that.")
    }
}

/// Transactions that replace others; see ``/MartletAntiEntropy/Republication``.
extension Receiver {
    /// - Throws: ``/MartletWire/WireError`` when the list of replaced transactions is invalid.
    package func checkReplaced(_ transaction: WireTransaction) throws(WireError) {
        guard transaction.restates.allSatisfy({ $0 > 0 && $0 < transaction.sequence }) else {
            throw WireError("It replaces a transaction that comes after it.")
        }
    }

    /// Counts the replaced transactions as received: they were refused, or will not be taken any more when they arrive.
    package func settleReplaced(_ transaction: WireTransaction, _ origin: NodeID, _ report: inout ApplyReport) throws {
        for sequence in transaction.restates {
            let envelope = WireEnvelope(origin: origin, sequence: Int64(sequence))
            // A pending transaction with a future clock will never be needed.
            try DeferredChanges.removeAhead(db, origin, sequence: Int64(sequence))
            guard try isNew(envelope) else { continue }
            try markReceived(envelope, &report)
            try forgetChunks(envelope)
            try DeadLetters(db, context).remove(envelope)
        }
    }

    /// Returns the transactions in the quarantine that arrived too late.
    package static func refused(_ db: Database, _ context: ReplicaContext, _ messageGuard: MessageGuard) throws
        -> [WireEnvelope]
    {
        guard context.collected.time > .zero else { return [] }
        var refused: [WireEnvelope] = []
        try DeadLetters.forEachTransaction(db) { source in
            guard source.isIntact, let message = try? source.opened(by: messageGuard, node: context.node),
                let transaction = try? DecodedTransaction(payload: message.payload),
                HybridTime(rawValue: transaction.header.hlc) <= context.collected.time,
                let envelope = try? source.envelope()
            else { return }
            refused.append(envelope)
        }
        return refused
    }
}
