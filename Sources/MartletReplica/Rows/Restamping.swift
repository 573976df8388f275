import Foundation
package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
package import MartletWire

/// The stamps of a store that are in the future, because they were made under a clock that was ahead.
package struct FutureStamps: Sendable, Equatable {
    package var rows = 0
    /// The clock that every later change has to exceed, in milliseconds since 1970.
    package var clock: Int64

    /// Returns nil if the clock is not ahead of this time. Reads rows only if it is.
    ///
    /// - Parameter limit: in milliseconds since 1970.
    package static func read(_ store: Store, after limit: Int64) throws -> FutureStamps? {
        try store.read { db in
            guard try Meta.integer(db, SyncMeta.format) != nil,
                let raw = try Meta.integer(db, SyncMeta.clock),
                HybridTime(stored: raw).milliseconds > limit
            else { return nil }
            let context = try ReplicaContext(db, now: { WallClock.milliseconds })
            let restamping = try Restamping(db, context, after: HybridTime(milliseconds: limit + 1))
            return FutureStamps(
                rows: try restamping.found().count, clock: HybridTime(stored: raw).milliseconds)
        }
    }
}

/// Gives registers that are stamped in the future current stamps, in the order of their former ones.
///
/// Runs in the caller's transaction, in which everything local is stamped. See decision 33.
package struct Restamping {
    package let db: Database
    package let context: ReplicaContext
    /// The first clock reading that is too late.
    package let limit: HybridTime

    package init(_ db: Database, _ context: ReplicaContext, after limit: HybridTime) throws {
        self.db = db
        self.context = context
        self.limit = limit
    }

    /// A row with a register that is stamped too late.
    package struct Found {
        package var entity: Entity
        package var identity: StableID
        /// The clocks of the row in its table. Nil if it is not there.
        package var clocks: RowClocks?
        package var pending: PendingRow?
        /// Set if the row has a separate tombstone entry.
        package var tombstone: Stamp?
    }

    private func isLate(_ clocks: RowClocks) -> Bool { clocks.stamps.contains { $0.time >= limit } }

    /// Searches all rows, pending rows and tombstones.
    package func found() throws -> [Found] {
        var all: [RowIdentity: Found] = [:]
        var order: [RowIdentity] = []
        func change(_ entity: Entity, _ identity: StableID, _ body: (inout Found) -> Void) {
            let name = RowIdentity(entity: entity.id, identity: identity)
            if all[name] == nil { order.append(name) }
            var found = all[name] ?? Found(entity: entity, identity: identity)
            body(&found)
            all[name] = found
        }
        let pendingRows = PendingRows(db: db, context: context)
        let encoder = try SnapshotRowEncoder(db, context)
        for entity in context.catalog.entities {
            try encoder.forEachRecord(of: entity) { record in
                guard isLate(record.clocks) else { return }
                change(entity, record.identity) { $0.clocks = record.clocks }
            }
            try context.tombstones.forEach(db, of: entity.id, from: limit) { stone in
                change(entity, stone.identity) { $0.tombstone = stone.stamp }
            }
        }
        for name in try pendingRows.all() {
            guard let entity = context.catalog[name.entity],
                let pendingRow = try pendingRows.load(context.table(entity), name.identity), isLate(pendingRow.clocks)
            else { continue }
            change(entity, name.identity) { $0.pending = pendingRow }
        }
        return order.compactMap { all[$0] }
    }

    /// The new stamps, by those that they replace.
    package struct Stamps {
        package var byOld: [Stamp: Stamp] = [:]
        /// Ascending.
        private var times: [(old: HybridTime, new: HybridTime)] = []
        /// No reading that is not too late is later than this one.
        package let first: HybridTime

        package init(_ olds: Set<Stamp>, _ context: ReplicaContext, after known: HybridTime) {
            context.clock.set(known)
            first = known
            for old in olds.sorted() {
                let time = context.clock.tick()
                byOld[old] = Stamp(time: time, node: old.node == .unpublished ? .unpublished : context.node)
                times.append((old.time, time))
            }
        }

        /// Returns the new time for an old one, relative to the registers that are restamped.
        package func time(of old: HybridTime) -> HybridTime { times.last { $0.old <= old }?.new ?? first }

        package func clocks(_ clocks: RowClocks) -> RowClocks {
            func new(_ stamp: Stamp) -> Stamp { byOld[stamp] ?? stamp }
            var exceptions = ColumnStamps()
            for entry in clocks.exceptions.entries { exceptions[entry.column] = new(entry.stamp) }
            return RowClocks(
                inserted: clocks.inserted.map(new), deleted: clocks.deleted.map(new), exceptions: exceptions)
        }
    }

    /// Computes the stamps.
    ///
    /// - Parameter known: the newest reading of this node's transactions that is not too late.
    package func stamps(_ found: [Found], after known: HybridTime) -> Stamps {
        var late: Set<Stamp> = []
        var known = max(known, HybridTime(milliseconds: context.now()))
        for stamp in found.flatMap(\.stamps) {
            if stamp.time >= limit { late.insert(stamp) } else { known = max(known, stamp.time) }
        }
        return Stamps(late, context, after: known)
    }

    /// Moves the times at which columns were added: the clock of an insert stands for the columns that existed then.
    package func moveAdditions(_ stamps: Stamps) throws {
        let rows = try Row.fetchAll(
            db, sql: "SELECT entity, slot, added FROM \(InternalName.columns) WHERE added >= ?",
            arguments: [limit.stored])
        for row in rows {
            let old = HybridTime(stored: row["added"] as Int64)
            try db.execute(
                sql: "UPDATE \(InternalName.columns) SET added = ? WHERE entity = ? AND slot = ?",
                arguments: [
                    stamps.time(of: old).stored, row["entity"] as Int64, row["slot"] as Int64,
                ])
        }
    }

    /// Stores the new stamps.
    ///
    /// - Returns: the changes to publish, in the order of their stamps.
    package func save(_ found: [Found], _ stamps: Stamps) throws -> [WireChange] {
        let pendingRows = PendingRows(db: db, context: context)
        let applier = Applier(db, context)
        var changes: [WireChange] = []
        let new = Set(stamps.byOld.values)
        for one in found {
            let table = context.table(one.entity)
            if let stone = one.tombstone.flatMap({ stamps.byOld[$0] }) {
                try context.tombstones.set(db, one.entity.id, one.identity, stone)
            }
            if let clocks = one.clocks, let place = try table.find(db, one.identity)?.address {
                try table.saveClocks(db, row: place.row, one.identity, stamps.clocks(clocks))
            }
            if var pending = one.pending {
                pending.clocks = stamps.clocks(pending.clocks)
                try pendingRows.restamp(pending)
            }
            guard let record = try applier.record(table, one.identity) else { continue }
            changes += try record.changes(of: one.entity, stampedWith: new, context)
        }
        return changes.sorted { $0.clockStep < $1.clockStep }
    }
}

extension Restamping.Found {
    fileprivate var stamps: [Stamp] {
        (clocks?.stamps ?? []) + (pending?.clocks.stamps ?? []) + (tombstone.map { [$0] } ?? [])
    }
}

extension RowClocks {
    fileprivate var stamps: [Stamp] {
        [inserted, deleted].compactMap(\.self) + exceptions.entries.map(\.stamp)
    }
}

extension RowRecord {
    /// Returns changes for the registers that have one of these stamps. Their steps are whole clock readings.
    fileprivate func changes(
        of entity: Entity, stampedWith new: Set<Stamp>, _ context: ReplicaContext
    ) throws -> [WireChange] {
        func isSent(_ stamp: Stamp) -> Bool { stamp.node != .unpublished && new.contains(stamp) }
        var changes: [WireChange] = []
        if let deleted = clocks.deleted, isSent(deleted) {
            changes.append(try message(.delete, entity, [], deleted, context))
        }
        var columns: [Stamp: [EntityColumn]] = [:]
        for column in entity.sharedColumns {
            guard let register = self.register(column.slot), isSent(register.stamp) else { continue }
            columns[register.stamp, default: []].append(column)
        }
        if let inserted = clocks.inserted, isSent(inserted), clocks.isAlive {
            changes.append(
                try message(.insert, entity, columns.removeValue(forKey: inserted) ?? [], inserted, context))
        }
        for (stamp, columns) in columns { changes.append(try message(.update, entity, columns, stamp, context)) }
        return changes
    }
}
