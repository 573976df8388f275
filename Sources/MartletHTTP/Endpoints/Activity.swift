import MartletAgent
package import MartletStore
package import MartletSync

/// The lists of the dashboard: recent transactions, conflicts, and parked and quarantined changes.
package struct Activity {
    private static let transactionCount = 50
    private static let itemCount = 50
    /// If there are more items than this, none is listed, since listing reads all of them.
    private static let readableCount = 1000

    package let document: [String: Any?]

    /// - Parameter withValues: true to include values of rows: the overruled ones, and the present ones.
    /// - Throws: ``/MartletCore/StoreError`` when the store can't be read.
    package init(_ store: Store, _ status: SyncStatus, withValues: Bool = false) throws {
        let parked = status.parkedCount <= Self.readableCount ? try store.parked() : []
        let quarantined = status.quarantinedCount <= Self.readableCount ? try store.quarantined() : []
        document = [
            "transactions": try store.recentTransactions(limit: Self.transactionCount).map(Self.object),
            "conflicts": try store.conflicts(last: Self.itemCount).reversed().map { conflict in
                var object = Self.object(conflict)
                guard withValues else { return object }
                object["row"] = JSON.identity(conflict.identity)
                object["overruled"] = JSON.value(conflict.value)
                object["current"] = try store.currentValue(of: conflict).flatMap(JSON.value)
                return object
            },
            "parked": parked.suffix(Self.itemCount).reversed().map(Self.object),
            "quarantined": quarantined.suffix(Self.itemCount).reversed().map(Self.object),
        ]
    }

    private static func object(_ transaction: TransactionSummary) -> [String: Any?] {
        [
            "id": transaction.id, "author": transaction.author, "time": JSON.date(transaction.timestamp),
            "origin": transaction.origin, "remote": transaction.isRemote, "cut": transaction.isCut,
            "changes": transaction.changes.map {
                ["table": $0.entity, "kind": $0.kind.rawValue, "count": $0.count] as [String: Any?]
            },
        ]
    }

    private static func object(_ conflict: Conflict) -> [String: Any?] {
        [
            "id": conflict.id, "kind": conflict.kind.rawValue, "table": conflict.entity, "column": conflict.column,
            "loser": conflict.loserName, "winner": conflict.winnerName, "time": JSON.date(conflict.since),
            "reapplied": conflict.reapplied != nil,
        ]
    }

    private static func object(_ item: ParkedItem) -> [String: Any?] {
        [
            "id": item.id, "reason": item.reason.rawValue, "detail": item.detail, "table": item.entity,
            "time": JSON.date(item.since),
        ]
    }

    private static func object(_ message: QuarantinedMessage) -> [String: Any?] {
        [
            "id": message.id, "reason": message.reason, "partition": Int(message.partition), "offset": message.offset,
            "bytes": message.payloadBytes, "time": JSON.date(message.since),
        ]
    }
}
