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

/// Restamps everything that is stamped further in the future than the allowed skew; see ``SyncEngine/restamp()``.
struct StoreRestamp {
    /// How many changes go into one transaction.
    private static let batchChanges = 500

    let session: ReplicaSession

    func run() throws -> RestampReport {
        var report = RestampReport()
        try session.transaction { db, context in
            let skew = HybridTime(milliseconds: session.now() + session.maxClockSkew + 1)
            // A store that was restamped by an earlier version still has such a watermark.
            try context.collected.putBack(db, to: HybridTime(milliseconds: session.now()), from: skew)
            guard context.clock.last >= skew else { return }
            let own = try OwnTransactions(db, after: skew)
            let restamping = try Restamping(db, context, after: min(skew, own.firstLate ?? skew))
            let found = try restamping.found()
            let stamps = restamping.stamps(found, after: own.newest)
            report.latest = stamps.byOld.keys.max().map { Date(milliseconds: $0.time.milliseconds) }
            try restamping.moveAdditions(stamps)
            // The context read the columns' times earlier, and holds clocks that are not flushed.
            try context.recent.flush(db)
            try context.notes.write(db)
            let fresh = try ReplicaContext(db, now: session.now, maxClockSkew: session.maxClockSkew)
            fresh.clock.set(context.clock.last)
            let changes = try Restamping(db, fresh, after: restamping.limit).save(found, stamps)
            try fresh.recent.finish(db, flushingFrom: session.configuration.recentClocks, fresh.notes)
            try fresh.notes.write(db)
            report.rows = found.count
            report.replaced = own.late.count
            try publish(changes, replacing: own.late, db, context, &report)
            context.clock.note()
        }
        try session.forgetContext()
        return report
    }

    private func publish(
        _ changes: [WireChange], replacing late: [Int64], _ db: Database, _ context: ReplicaContext,
        _ report: inout RestampReport
    ) throws {
        var changes = changes[...]
        var late = late[...]
        while !changes.isEmpty || !late.isEmpty {
            try Outbox.publish(
                Array(changes.prefix(Self.batchChanges)), db, context, as: session.configuration.encoding,
                replacing: Array(late.prefix(InputBounds.maxReplaced)))
            changes = changes.dropFirst(Self.batchChanges)
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
