package import GRDB
import MartletBus
import MartletCore
package import MartletReplica
package import MartletWire
import Synchronization

/// Tells whether a transaction was refused because it arrived after the garbage collection of tombstones, and its
/// author has not been told. From any thread.
package final class LateTransactions: Sendable {
    private let isUnreported = Atomic(false)

    init() {}

    /// Such a transaction was refused.
    package func note() { isUnreported.store(true, ordering: .relaxed) }

    /// True while an author should hear of one.
    package var areWaiting: Bool { isUnreported.load(ordering: .relaxed) }

    /// Returns whether an author should hear of one, and forgets it. If telling fails, call ``note()``.
    package func take() -> Bool { isUnreported.exchange(false, ordering: .relaxed) }
}

extension LateTransactions {
    /// Returns the transactions in the quarantine that arrived too late.
    package static func quarantined(
        _ db: Database, _ context: ReplicaContext, _ messageGuard: MessageGuard
    ) throws -> [WireEnvelope] {
        guard context.collected.time > .zero else { return [] }
        var refused: [WireEnvelope] = []
        try DeadLetters.forEachTransaction(db) { source in
            guard source.isIntact, let message = try? source.opened(by: messageGuard, node: context.node) else {
                return
            }
            let payload: TransactionPayload =
                if case .stored = source.contents { source.contents } else { .whole(message.payload) }
            let decoded = try Result<DecodedTransaction, WireError>.reading {
                try DecodedTransaction(payload, maxChangeBytes: messageGuard.configuration.maxRowBytes)
            }
            guard case .success(let transaction) = decoded,
                HybridTime(rawValue: transaction.header.hlc) <= context.collected.time,
                let envelope = try? source.envelope()
            else { return }
            refused.append(envelope)
        }
        return refused
    }
}
