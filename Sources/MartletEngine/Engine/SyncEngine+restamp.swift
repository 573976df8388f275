public import Foundation
import GRDB
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// The result of restamping what was stamped in the future.
public struct RestampReport: Sendable, Equatable {
    /// Rows with such a stamp, deleted rows included.
    public var rows = 0
    /// The latest time among those stamps. Nil if there were none.
    public var latest: Date?
    /// Transactions that the new ones replace: other nodes keep those waiting.
    public var replaced = 0
    /// Transactions that were added to the outbox.
    public var published = 0

    public init() {}
}

extension SyncEngine {
    /// How many changes go into one transaction.
    private static let restampBatchChanges = 500

    /// Restamps everything that is stamped further in the future than the allowed skew, and publishes it. It was
    /// written under a clock that was ahead, and until that time other nodes keep it waiting, with everything that this
    /// node writes.
    ///
    /// Runs in one SQLite transaction, in which other writers wait. Not while anything else uses this engine, and not
    /// before the clock is right.
    /// - Returns: what was found. If nothing is stamped in the future, nothing is changed.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written; nothing was changed then.
    @discardableResult
    public func restamp() throws -> RestampReport {
        var report = RestampReport()
        try transaction { db, context in
            let skew = HybridTime(milliseconds: now() + maxClockSkew + 1)
            guard context.clock.last >= skew else { return }
            let own = try OwnTransactions(db, after: skew)
            let restamping = try Restamping(db, context, after: min(skew, own.firstLate ?? skew))
            let found = try restamping.found()
            let stamps = restamping.stamps(found, after: own.newest)
            report.latest = stamps.byOld.keys.max().map { Date(milliseconds: $0.time.milliseconds) }
            try restamping.moveAdditions(stamps)
            // The context read the columns' times earlier, and holds clocks that are not flushed.
            try context.recent.fold(db)
            try context.notes.write(db)
            let fresh = try EngineContext(db, now: now, maxClockSkew: maxClockSkew)
            fresh.clock = context.clock
            let changes = try Restamping(db, fresh, after: restamping.limit).save(found, stamps)
            try fresh.recent.finish(db, foldingFrom: configuration.recentClocks, fresh.notes)
            try fresh.notes.write(db)
            report.rows = found.count
            report.replaced = own.late.count
            try publish(changes, replacing: own.late, db, context, &report)
            context.noteClock()
        }
        try forgetContext()
        return report
    }

    private func publish(
        _ changes: [WireChange], replacing late: [Int64], _ db: Database, _ context: EngineContext,
        _ report: inout RestampReport
    ) throws {
        var changes = changes[...]
        var late = late[...]
        while !changes.isEmpty || !late.isEmpty {
            try publish(
                Array(changes.prefix(Self.restampBatchChanges)), db, context,
                replacing: Array(late.prefix(InputBounds.maxReplaced)))
            changes = changes.dropFirst(Self.restampBatchChanges)
            late = late.dropFirst(InputBounds.maxReplaced)
            report.published += 1
        }
    }

    /// This node's transactions in the outbox, by whether they are stamped too late.
    private struct OwnTransactions {
        var late: [Int64] = []
        /// The first clock reading of the late ones.
        var firstLate: HybridTime?
        /// The last clock reading of the others.
        var newest = HybridTime.zero

        init(_ db: Database, after limit: HybridTime) throws {
            try Outbox.forEach(db) { entry in
                guard let transaction = try? DecodedTransaction(payload: entry.payload(db)),
                    let latest = transaction.latest
                else { return true }
                guard latest >= limit else {
                    newest = max(newest, latest)
                    return true
                }
                if !entry.isReplaced { late.append(entry.sequence) }
                firstLate = min(firstLate ?? .init(rawValue: .max), HybridTime(rawValue: transaction.header.hlc))
                return true
            }
        }
    }
}
