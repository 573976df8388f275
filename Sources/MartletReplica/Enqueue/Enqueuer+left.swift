import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
package import MartletWire

/// What local changes leave behind that SQLite would not have allowed with foreign keys switched on. Most programs
/// don't switch them on, but other nodes apply what the schema declares, so this one does, too.
extension Enqueuer {
    /// Remembers a deleted row, for the rows that refer to it.
    package func noteLeft(_ change: LogChange, _ identity: StableID) {
        let values = Dictionary(change.values.map { ($0.column.slot, $0.value) }, uniquingKeysWith: { a, _ in a })
        context.noteLeft(change.entity, RemovedTarget(identity: identity, row: change.row, values: values))
    }

    /// Remembers that a row has left the values of its identity.
    package func noteLeftName(_ change: LogChange) {
        guard context.valueKeys.byTarget[change.entity.id] != nil else { return }
        let values = (change.before?.values ?? []).map { ($0.column.slot, $0.value) }
        context.noteLeft(change.entity, RemovedTarget(values: Dictionary(values, uniquingKeysWith: { a, _ in a })))
    }

    /// Journals and forgets pending references: a program here, which saw NULL, set them to something else or deleted
    /// the row.
    package func overrulePending(
        _ entity: Entity, _ identity: StableID, _ slots: [Int], of clocks: RowClocks, at stamp: Stamp,
        _ kind: ConflictKind = .attribute
    ) throws {
        guard !context.pendingReferences.isEmpty else { return }
        let applier = Applier(db, context)
        for (slot, value) in try applier.pending(entity, identity) where slots.contains(slot) {
            try applier.journal.record(
                kind, context.table(entity), identity, slot: slot, value: value,
                stamp: clocks.stamp(of: slot) ?? .zero, winner: stamp)
        }
        try forgetPending(entity, identity, slots)
    }

    /// Remembers that rows may have left keys that others refer to. The values of those keys are not known.
    package func noteLeftKeys(_ entity: Entity, _ slots: [Int]) {
        let keys = context.valueKeys.byTarget[entity.id] ?? []
        guard keys.contains(where: { key in key.targetSlots.contains { $0.map(slots.contains) ?? false } }) else {
            return
        }
        context.noteLeft(entity, RemovedTarget())
    }

    /// Records that a row without an ID was changed or deleted, or has lost its key: nothing is published of that, but
    /// its unique keys may be free now.
    package func noteChangeWithoutIdentity(_ entity: Entity) {
        noteFreed(entity)
        context.noteLeft(entity, RemovedTarget())
    }

    /// Remembers a row that has taken over the integer key of a removed row.
    package func noteReused(_ change: LogChange, _ identity: StableID) throws {
        guard let row = change.row, change.entity.localKey != nil, context.table(change.entity).isReferenced,
            let old = try context.resolver.retired(db, change.entity, row: row, after: 0), old != identity
        else { return }
        context.reused.add(
            ReusedKeys.Row(change: change, key: row, old: old, new: identity, before: context.clock.last))
    }

    /// Returns the stable ID of the row that had these values, which make up the declared ID at this point of the log.
    /// Its ID may still contain rows that had these integer keys before: those were removed or replaced first, and
    /// their IDs are passed on only at the end of the transaction. Or it already contains the row that takes such a key
    /// over: the log has the move later.
    package func currentName(
        _ table: EntityTable, _ declared: StableID?, _ values: [(column: EntityColumn, value: Value)], row: Int64?,
        at change: Int64
    ) throws -> StableID? {
        let columns = table.entity.identityColumns
        guard let declared, columns.contains(where: { $0.reference != nil }) else { return declared }
        let kept = try row.flatMap { table.entity.isKeyedByInteger ? try table.keptIdentity(db, row: $0) : nil }
        if try kept.map({ $0 == declared }) ?? (table.clocks(db, row: row, declared) != nil) { return declared }
        var names: [[Value]] = [[]]
        for (column, part) in zip(columns, try declared.values()) {
            let local = values.first { $0.column.slot == column.slot }?.value
            let parts = try [part] + formerTargets(column, local) + displacingTarget(column, local, at: change)
            names = names.flatMap { name in parts.map { name + [$0] } }
        }
        return try names.map(StableID.init).first { name in
            try kept.map { $0 == name } ?? (table.clocks(db, row: row, name) != nil)
        } ?? declared
    }

    /// Returns references to removed rows that had the integer key before, newest first.
    package func formerTargets(_ column: EntityColumn, _ local: Value?) throws -> [Value] {
        guard let name = column.reference, let key = local.flatMap(column.referredRow),
            let target = context.catalog[name]
        else {
            return []
        }
        return try context.resolver.retired(db, target, row: key, limit: 8).map {
            .reference(Reference(entity: name, identity: $0))
        }
    }

    /// Enqueues changes for rows that refer to a row by the integer key that it took over: they stay the same here, but
    /// their reference changes on other nodes.
    ///
    /// - Returns: false if the slice ends before all of them are enqueued.
    ///
    /// - Parameter end: changes from this log ID on have no clocks yet.
    package func stampReused(_ wire: inout OutgoingChanges, _ slice: inout EnqueueSlice, before end: Int64) throws
        -> Bool
    {
        guard !context.reused.isEmpty else { return true }
        while true {
            let (rows, hasMore) = try context.reused.take(db, limit: slice.partRows)
            try stampReused(rows, &wire, before: end)
            for _ in rows { slice.note(0) }
            guard hasMore else { return true }
            guard slice.hasRoomWithin else { return false }
        }
    }

    private func stampReused(_ rows: [ReusedKeys.Row], _ wire: inout OutgoingChanges, before end: Int64) throws {
        let applier = Applier(db, context)
        let referred = try Dictionary(grouping: rows, by: \.change.entity.id).mapValues { rows in
            try applier.referred(context.table(rows[0].change.entity).entity, rows.map(\.key))
        }
        for group in ReusedKeys.inOrder(rows) {
            guard let row = group.last, let entity = context.catalog[row.change.entity.id],
                referred[entity.id]?.contains(row.key) ?? false
            else { continue }
            // The row may have got another ID since.
            let new = try row.isLast ? context.table(entity).keptIdentity(db, row: row.key) ?? row.new : row.new
            if row.isLast {
                try stampReferrers(
                    to: entity, row: row.key, from: row.old, new, row.change,
                    before: row.before, at: end, &wire)
            }
            for old in group.reversed().map(\.old) where old != new {
                try stampNamesakes(
                    entity, from: old, to: new, row.change, holding: [row.key], takenOver: row.key, at: end, &wire)
            }
        }
    }
}
