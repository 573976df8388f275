package import GRDB
import MartletCore
import MartletStore
package import MartletWire

/// Retries pending changes that are kept as messages; see ``DeferredChanges``.
package struct DeferredRetry {
    private let db: Database
    private let context: ReplicaContext
    private let limits: SecurityConfiguration

    package init(_ db: Database, _ context: ReplicaContext, _ limits: SecurityConfiguration) {
        self.db = db
        self.context = context
        self.limits = limits
    }

    /// Retries changes that named an unknown table or column. To be called after a schema change.
    func retryUnknown() throws {
        _ = try retry(.waitingForSchema)
        // Once for each schema: there may be many, and only a schema change can remove a constraint.
        if try context.schemaVersion != Meta.integer(db, SyncMeta.retriedSchema) {
            try Applier(db, context).retryConstrained()
            try Meta.set(db, SyncMeta.retriedSchema, context.schemaVersion)
        }
        try close()
    }

    /// Retries everything that is pending. Transactions with a clock ahead keep waiting unless they are due.
    func retryAll() throws {
        _ = try retry(.all(at: context.now()))
        try Applier(db, context).retryAll()
        try close()
    }

    private func close() throws {
        try context.applied.close(db, mark: TransactionMark(author: TransactionAuthor.sync, context: "retry"))
    }

    /// - Returns: how many were applied.
    func retry(_ selection: DeferredChanges.Selection) throws -> Int {
        let transactions = TransactionApplier(db: db, context: context, limits: limits, topic: "")
        var applied = 0
        let count = try DeferredChanges.forEach(db, selection) { id, payload, reason in
            // The entry keeps its number and its age.
            if reason == .unknownSchema || reason == .filtered, isStillUnknown(payload) { return }
            guard case .stored = payload else {
                try DeferredChanges.remove(db, id)
                if try transactions.applyDeferred(payload).committed != nil { applied += 1 }
                return
            }
            // Its parts are read while it is applied.
            if try transactions.applyDeferred(payload).committed != nil { applied += 1 }
            try DeferredChanges.remove(db, id)
        }
        if count > 0 { context.clock.note() }
        return applied
    }

    /// Returns true for a change that names something that this store still lacks, or that its filter still rejects.
    private func isStillUnknown(_ payload: TransactionPayload) -> Bool {
        // A single change is kept as a whole.
        guard case .whole(let bytes) = payload, let transaction = try? WireFormat.decode(bytes),
            transaction.changes.count == 1
        else { return false }
        do {
            let decoded = DecodedChange(transaction.changes[0])
            let change = try RemoteChange(decoded, stamp: .zero, context: context)
            // A part for local columns contains no other columns.
            return try change.columns.isEmpty && decoded.localPart(change.table) != nil
        } catch {
            return error is UnknownSchema
        }
    }
}
