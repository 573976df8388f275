import GRDB
import MartletStore

/// What local changes leave behind that SQLite would not have let happen with foreign keys switched on. Most programs don't switch them
/// on, and other nodes apply what the schema declares: so does this one.
extension Registrar {
    /// Rows that have taken over the integer key of one that is gone: what referred to that one refers to the other one here.
    final class ReusedKeys {
        struct Row {
            var change: LogChange
            var old: StableID
            var new: StableID
            /// When the key had not been taken over yet.
            var before: Stamp
        }

        fileprivate var rows: [Int64: [Row]] = [:]

        var isEmpty: Bool { rows.isEmpty }
    }

    /// Remembers a row that was deleted, for the rows that refer to it.
    func noteLeft(_ change: LogChange, _ identity: StableID) {
        let values = Dictionary(change.values.map { ($0.column.slot, $0.value) }, uniquingKeysWith: { a, _ in a })
        context.noteLeft(change.entity, LeftRow(identity: identity, row: change.row, values: values))
    }

    /// Remembers that a row has left the values that named it.
    func noteLeftName(_ change: LogChange) {
        guard context.valueKeys.byTarget[change.entity.id] != nil else { return }
        let values = (change.before?.values ?? []).map { ($0.column.slot, $0.value) }
        context.noteLeft(change.entity, LeftRow(values: Dictionary(values, uniquingKeysWith: { a, _ in a })))
    }

    /// A reference that waited for its target was set to something else here, where NULL was seen. The journal has what it was.
    func overrulePending(
        _ entity: Entity, _ identity: StableID, _ slots: [Int], of clocks: RowClocks, at stamp: Stamp
    ) throws {
        guard context.pendingCount > 0 else { return }
        let applier = Applier(db, context)
        for (slot, value) in try applier.pending(entity, identity) where slots.contains(slot) {
            try applier.journal.record(
                .attribute, context.table(entity), identity, slot: slot, value: value,
                stamp: clocks.stamp(of: slot) ?? .zero, winner: stamp)
        }
        try forgetPending(entity, identity, slots)
    }

    /// Remembers that rows may have left keys that others refer to. Which values those had is not known.
    func noteLeftKeys(_ entity: Entity, _ slots: [Int]) {
        let keys = context.valueKeys.byTarget[entity.id] ?? []
        guard keys.contains(where: { key in key.targetSlots.contains { $0.map(slots.contains) ?? false } }) else {
            return
        }
        context.noteLeft(entity, LeftRow())
    }

    /// A row without an ID was changed or deleted, or has lost its key: nobody hears of that, and what it had may be free.
    func noteNamelessChange(_ entity: Entity) {
        noteFreed(entity)
        context.noteLeft(entity, LeftRow())
    }

    /// Remembers a row that has taken over the integer key of another one, which is gone.
    func noteReused(_ change: LogChange, _ identity: StableID) throws {
        guard let row = change.row, change.entity.localKey != nil, context.table(change.entity).isReferenced,
            let old = try context.resolver.retired(db, change.entity, row: row, after: 0), old != identity
        else { return }
        let before = Stamp(time: context.clock.last, node: context.node)
        reused.rows[change.entity.id, default: []].append(
            ReusedKeys.Row(change: change, old: old, new: identity, before: before))
    }

    /// What the row is called that had these values, which give it this name at this point of the log. It may still be called after rows
    /// that had these integer keys before: they went first, or were replaced, and their names pass on at the end of the transaction.
    func currentName(
        _ table: EntityTable, _ declared: StableID?, _ values: [(column: EntityColumn, value: Value)], row: Int64?
    ) throws -> StableID? {
        let columns = table.entity.identityColumns
        guard let declared, columns.contains(where: { $0.reference != nil }),
            try table.clocks(db, row: row, declared) == nil
        else { return declared }
        var names: [[Value]] = [[]]
        for (column, part) in zip(columns, try declared.values()) {
            let local = values.first { $0.column.slot == column.slot }?.value
            let parts = try [part] + formerTargets(column, local)
            names = names.flatMap { name in parts.map { name + [$0] } }
        }
        return try names.map(StableID.init).first { try table.clocks(db, row: row, $0) != nil } ?? declared
    }

    /// References to rows that had the integer key before and are gone, newest first.
    private func formerTargets(_ column: EntityColumn, _ local: Value?) throws -> [Value] {
        guard let name = column.reference, case .integer(let key) = local, let target = context.catalog[name] else {
            return []
        }
        return try context.resolver.retired(db, target, row: key, limit: 8).map {
            .reference(Reference(entity: name, identity: $0))
        }
    }

    /// Rows that refer to a row by the integer key that it took over say the same here, and something new elsewhere.
    func registerReused(_ wire: inout [WireChange]) throws {
        guard !reused.rows.isEmpty else { return }
        let all = reused.rows
        reused.rows = [:]
        for (id, rows) in all.sorted(by: { $0.key < $1.key }) {
            guard let entity = context.catalog[id] else { continue }
            let referred = try Applier(db, context).referred(entity, rows.compactMap(\.change.row))
            // What took over a key last is what others refer to in the end.
            let last = Dictionary(rows.indices.map { (rows[$0].change.row, $0) }, uniquingKeysWith: { $1 })
            for (index, row) in rows.enumerated() {
                guard let key = row.change.row, referred.contains(key) else { continue }
                if last[key] == index {
                    try registerReferrers(
                        to: entity, row: key, from: row.old, row.new, row.change, before: row.before, &wire)
                }
                try registerNamesakes(entity, from: row.old, to: row.new, row.change, holding: key, &wire)
            }
        }
    }
}
