import GRDB
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore

/// Collects the tombstones of rows that were deleted long ago, in the caller's transaction.
struct TombstoneCollector {
    let db: Database
    let context: ReplicaContext

    /// How many tombstones are examined in one transaction, during which other writers wait.
    static let batch = 5000

    /// Advances the watermark as far as the promises of other nodes allow.
    ///
    /// - Parameter horizon: in milliseconds.
    func advanceWatermark(horizon: Int64) throws {
        guard try isComplete(),
            let watermark = try TombstoneWatermark.compute(
                Membership(db: db, context: context).members(), horizon: horizon, now: context.now()),
            watermark > context.collected.time
        else { return }
        try context.collected.advance(db, to: watermark)
    }

    /// Returns false while received changes are not applied (a snapshot is loaded in part, a transaction is pending),
    /// or messages are known to be missing. Changes that a filter holds back don't count: nobody knows when
    /// they will be applied.
    private func isComplete() throws -> Bool {
        guard try AntiEntropyReader.isReady(db), try WantedOffsets.load(db).isEmpty else { return false }
        return try !DeferredChanges.hasUnfiltered(db)
    }

    /// The place at which a pass over all tombstones continues.
    struct Place: Equatable {
        var entity: Int64 = 0
        var identity: [UInt8] = []
    }

    /// Collects tombstones up to the watermark.
    ///
    /// - Parameter place: where to continue. Nil after the last tombstone.
    /// - Returns: how many were collected.
    func collect(_ place: inout Place?) throws -> Int {
        guard context.collected.time > .zero, let from = place else {
            place = nil
            return 0
        }
        let (tombstones, last) = try tombstones(after: from)
        let pendingRows = PendingRows(db: db, context: context)
        var count = 0
        for stone in tombstones where try forget(stone.entity, stone.identity, pendingRows) { count += 1 }
        place = last
        if last == nil { try forgetUpdates(pendingRows) }
        return count
    }

    /// Returns the next tombstones that may be collected, and where to continue after them.
    private func tombstones(
        after place: Place
    ) throws -> (tombstones: [(entity: Int64, identity: StableID)], last: Place?) {
        let unsent = try UnseenStamps(db, context, from: (context.meta(db, SyncMeta.acknowledged) ?? 0) + 1)
        var tombstones: [(entity: Int64, identity: StableID)] = []
        var last: Place?
        var seen = 0
        try context.tombstones.forEach(db, after: place.entity, place.identity, limit: Self.batch) { stone in
            seen += 1
            last = Place(entity: stone.entity, identity: stone.identity.bytes)
            // A filter kept this delete here. It may be published once the filter is gone.
            guard stone.stamp.node != .unpublished else { return }
            // Changes of an ignored table are applied once the filter is gone. An insert among them may be older.
            guard !context.filters.ignored.contains(stone.entity) else { return }
            // A local delete that the broker has not acknowledged is kept, however old it is.
            guard stone.stamp.time <= context.collected.time, !unsent.contains(stone.stamp) else { return }
            tombstones.append((stone.entity, stone.identity))
        }
        return (tombstones, seen < Self.batch ? nil : last)
    }

    /// Deletes pending updates of rows whose insert never arrived: the rows were deleted, and their tombstones
    /// collected.
    private func forgetUpdates(_ pendingRows: PendingRows) throws {
        for name in try pendingRows.all() where !name.identity.hasNoIdentity {
            guard let entity = context.catalog[name.entity] else { continue }
            let table = context.table(entity)
            guard let pendingRow = try pendingRows.load(table, name.identity), pendingRow.clocks.deleted == nil,
                pendingRow.clocks.isCollected(by: context.collected.time), try table.find(db, name.identity) == nil
            else { continue }
            try pendingRows.remove(pendingRow)
        }
    }

    private func forget(_ entity: Int64, _ identity: StableID, _ pendingRows: PendingRows) throws -> Bool {
        // The rows of a table that is not tracked now are unknown.
        guard let entity = context.catalog[entity] else { return false }
        let table = context.table(entity)
        // If the row was inserted again, its values from before the delete must still not count.
        guard try table.find(db, identity) == nil, try !context.tombstones.isLasting(db, entity.id, identity) else {
            return false
        }
        if let pendingRow = try pendingRows.load(table, identity) {
            guard pendingRow.clocks.isCollected(by: context.collected.time) else { return false }
            try pendingRows.remove(pendingRow)
        }
        try context.tombstones.remove(db, entity.id, identity)
        return true
    }
}
