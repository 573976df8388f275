import GRDB
import MartletCore
import MartletStore
import MartletMerge

/// The events that may let pending changes continue: rows that have arrived, and unique keys that may be free.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class PendingWakeups {
    /// Which pending changes may continue once a transaction that is enqueued in part is complete.
    package enum Unsettled {
        case nothing
        /// Those that wait for what is noted here.
        case known
        /// Any: only a former context knew which.
        case unknown
    }

    package private(set) var unsettled: Unsettled
    /// Rows that have come in this transaction.
    private var arrived: [RowIdentity] = []
    /// Entities with a deleted or changed row, so that a unique key may be free now.
    private var freed: Set<Int64> = []
    /// How many arrivals are held before those are dropped that nothing waits for.
    private static let minSifted = 10_000
    private var siftedFrom = minSifted
    private let meta: MetaValues

    init(_ db: Database, _ meta: MetaValues) throws {
        self.meta = meta
        unsettled = try Meta.integer(db, SyncMeta.unsettled) != nil ? .unknown : .nothing
    }

    var isEmpty: Bool { arrived.isEmpty && freed.isEmpty }

    func note(arrival row: RowIdentity) { arrived.append(row) }

    /// True if so many rows have come that it is time to keep only those that something waits for.
    var isCrowded: Bool { arrived.count >= siftedFrom }

    /// The arrivals were sifted. If most had to stay, the next time is later in proportion.
    func noteSifted() { siftedFrom = max(Self.minSifted, 2 * arrived.count) }

    func note(freed entity: Int64) { freed.insert(entity) }

    /// Returns the row that came last, and forgets it.
    func takeArrival() -> RowIdentity? { arrived.popLast() }

    func takeFreed() -> Int64? {
        guard let entity = freed.min() else { return nil }
        freed.remove(entity)
        return entity
    }

    /// Forgets the rows for which the condition does not hold.
    func keepArrivals(where isWaitedFor: (RowIdentity) throws -> Bool) rethrows {
        arrived = try arrived.filter(isWaitedFor)
    }

    /// Remembers, also across a crash, that pending changes may continue once the transaction is enqueued as a whole.
    func noteUnsettled(_ db: Database) throws {
        guard unsettled == .nothing else { return }
        try meta.set(db, SyncMeta.unsettled, 1)
        unsettled = .known
    }

    /// Forgets that pending changes may continue: all have been retried.
    func noteSettled(_ db: Database) throws {
        guard unsettled != .nothing else { return }
        try db.execute(sql: "DELETE FROM \(InternalName.meta) WHERE key = ?", arguments: [SyncMeta.unsettled])
        unsettled = .nothing
    }
}
