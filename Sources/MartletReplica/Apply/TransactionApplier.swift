import Foundation
package import GRDB
import MartletCore
package import MartletStore
package import MartletWire

/// Merges whole transactions of other nodes, and closes each in the history with its origin. Whether a transaction has
/// arrived before is the caller's concern.
package struct TransactionApplier {
    private let db: Database
    private let context: ReplicaContext
    private let quarantine: QuarantineSpace

    /// What became of a transaction.
    package struct Outcome {
        /// When it was committed at its origin, in milliseconds since 1970 by the origin's clock. Nil if nothing of it
        /// was applied.
        package var committed: Int64?
        /// True if it waits until its clock is no longer ahead.
        package var isDeferred = false
        /// How many messages were quarantined: what can't be understood of it.
        package var quarantined = 0
    }

    /// - Parameters:
    ///   - limits: the bounds of the quarantine.
    ///   - topic: the topic that the transactions come from, or an empty string.
    package init(db: Database, context: ReplicaContext, limits: SecurityConfiguration, topic: String) {
        self.db = db
        self.context = context
        quarantine = QuarantineSpace(db, context, limits, topic: topic)
    }

    /// Merges a transaction, and closes it in the history with its origin.
    ///
    /// - Parameters:
    ///   - trace: the context that the transaction gets in the history.
    ///   - mark: the mark that closes it in the history. Nil: that of a transaction of another node.
    /// - Throws: ``/MartletWire/WireError`` before any change is applied. Only the origin's name may have been recorded
    ///   by then.
    package func apply(
        _ transaction: DecodedTransaction, payload: TransactionPayload, trace: String? = nil,
        mark: TransactionMark? = nil
    ) throws -> Outcome {
        guard let origin = transaction.origin else { throw WireError("The origin is not a UUID.") }
        guard let latest = transaction.latest else { throw WireError("The clocks of the changes overflow.") }
        let skew = context.maxClockSkew
        if latest.milliseconds > context.now() + skew {
            // The transaction is only stored: nothing of it is applied, and its clock is not taken over.
            try hold(
                payload, transaction.header, .futureClock, "clock ahead", release: latest.milliseconds - skew)
            return Outcome(isDeferred: true)
        }
        try context.nodes.note(db, origin, name: transaction.header.originName)
        // Finds faults before any change is applied.
        if transaction.mayHaveFault { try forEachChange(of: transaction, { _ in }, unknown: { _, _, _ in }) }
        context.clock.observe(latest)
        let applier = Applier(db, context)
        let withoutIdentity = try forEachChange(of: transaction, applier.add(_:)) { change, stamp, reason in
            try hold(change, of: transaction, stamp, reason)
        }
        try applier.finish()
        // Only these changes are left out: a change without a row identity changes no row.
        let isPartQuarantined = try refuse(withoutIdentity, of: transaction.header)
        let source = transaction.source
        try context.applied.close(
            db, mark: mark ?? TransactionMark(author: TransactionAuthor.sync, context: trace, origin: source))
        return Outcome(committed: source.timestamp, quarantined: isPartQuarantined ? 1 : 0)
    }

    /// Applies a transaction that was deferred here or by the maker of a snapshot. Quarantines it if it is invalid.
    ///
    /// - Parameter isSettled: whether the transaction has nothing to say any more.
    @discardableResult
    package func applyDeferred(
        _ payload: TransactionPayload, unless isSettled: (DecodedTransaction) throws -> Bool = { _ in false }
    ) throws -> Outcome {
        do {
            let transaction = try DecodedTransaction(payload)
            return try isSettled(transaction) ? Outcome() : apply(transaction, payload: payload)
        } catch let error as WireError {
            return try refuse(payload, error)
        }
    }

    /// Quarantines a transaction that was no message of its own.
    package func refuse(_ payload: TransactionPayload, _ error: WireError) throws -> Outcome {
        try quarantine.add(part: payload, error)
        return Outcome(quarantined: 1)
    }

    /// Quarantines the changes of a transaction that have no row identity, as a message of their own.
    ///
    /// - Returns: false if there are none, or if the quarantine has them.
    package func refuse(_ withoutIdentity: ChangeSelection, of header: WireTransaction) throws -> Bool {
        guard let entity = withoutIdentity.changes.first?.entity else { return false }
        var part = header
        part.changes = withoutIdentity.changes
        let payload = try WireFormat.encode(part, as: .protobuf)
        // A snapshot may bring the same part again.
        guard try !DeadLetters(db, context).containsPart(payload) else { return false }
        try quarantine.add(part: .whole(payload), .noIdentity(entity))
        return true
    }

    /// Calls `body` with each change that this store understands. Calls `unknown` with each change, or part of a
    /// change, that it doesn't.
    ///
    /// - Returns: the changes that have no row identity.
    /// - Throws: ``/MartletWire/WireError`` for invalid changes.
    @discardableResult
    private func forEachChange(
        of transaction: DecodedTransaction, _ body: (RemoteChange) throws -> Void,
        unknown: (WireChange, Stamp, UnknownSchema) throws -> Void
    ) throws -> ChangeSelection {
        var time = transaction.header.hlc
        var withoutIdentity = ChangeSelection()
        try transaction.forEachChange { decoded in
            time &+= decoded.clockStep
            guard try withoutIdentity.addIfWithoutIdentity(decoded) else { return }
            let stamp = Stamp(time: HybridTime(rawValue: time), node: transaction.clockedBy)
            let change: RemoteChange
            do {
                change = try RemoteChange(decoded, stamp: stamp, context: context)
            } catch let error as UnknownSchema {
                return try unknown(decoded.message(), stamp, error)
            }
            if let local = try decoded.localPart(change.table) {
                try unknown(local, stamp, UnknownSchema(detail: "a column is local", isFiltered: true))
                if change.kind == .update, change.columns.isEmpty { return }
            }
            try body(change)
        }
        return withoutIdentity
    }

    // MARK: Deferring

    private func hold(
        _ change: WireChange, of transaction: DecodedTransaction, _ stamp: Stamp, _ reason: UnknownSchema
    ) throws {
        var part = transaction.header
        part.hlc = stamp.time.rawValue
        part.changes = [change]
        part.changes[0].clockStep = 0
        // `restates` is settled with the whole transaction. And what the message has once isn't kept again for each
        // change.
        part.restates = []
        if part.author.utf8.count > InputBounds.maxNameBytes { part.clearAuthor() }
        try hold(
            .whole(WireFormat.encode(part, as: .protobuf)), part, reason.isFiltered ? .filtered : .unknownSchema,
            reason.detail, release: nil)
    }

    private func hold(
        _ payload: TransactionPayload, _ transaction: WireTransaction, _ reason: ParkReason, _ detail: String,
        release: Int64?
    ) throws {
        if release != nil { context.releases.note() }
        try DeferredChanges.add(
            db, payload, transaction, reason, detail: detail, release: release, now: context.now())
    }
}
