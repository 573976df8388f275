import GRDB
import MartletStore

extension Applier {
    /// Values as they are in this file.
    struct Resolved {
        var values: [(slot: Int, value: Value)] = []
        /// References whose target is not here: the column is null meanwhile.
        var pending: [(slot: Int, value: Value, wait: [UInt8])] = []
        /// A reference whose target is not here, in a column that may not be null.
        var blocked: (detail: String, wait: [UInt8])?
        /// Columns whose pending reference, if there was one, is settled.
        var settled: [Int] = []
    }

    /// Makes values local: references become the integer keys of this file.
    ///
    /// - Parameter newRow: the integer key that the row is about to get, for references to itself.
    /// - Returns: nil where a target is missing and `isFinal` is false.
    func resolve(
        _ table: EntityTable, _ identity: StableID, _ values: [(Int, Value)], isFinal: Bool, newRow: Int64? = nil
    ) throws -> Resolved? {
        var resolved = Resolved()
        resolved.values.reserveCapacity(values.count)
        for (slot, value) in values {
            guard let column = table.columnsBySlot[slot] else { continue }
            var local = value
            var missing: (entity: Entity, identity: StableID)?
            if case .reference(let reference) = value {
                guard let target = context.catalog[reference.entity] else {
                    throw UnknownSchema(detail: "table \(reference.entity)")
                }
                if let row = try context.resolver.row(db, target, reference.identity) {
                    local = .integer(row)
                } else if let newRow, target.id == table.entity.id, reference.identity == identity {
                    local = .integer(newRow)
                } else {
                    missing = (target, reference.identity)
                }
            } else if let target = try naturalTarget(table, column, value),
                target.entity.id != table.entity.id || target.identity != identity
            {
                missing = target
            }
            guard let missing else {
                resolved.values.append((slot, local))
                resolved.settled.append(slot)
                continue
            }
            guard isFinal else { return nil }
            let wait = WaitKey.target(missing.entity.id, missing.identity)
            if column.isNotNull || table.entity.identityColumns.contains(column) {
                resolved.blocked = (
                    "\(table.entity.name).\(column.name) refers to a row of \(missing.entity.name)", wait
                )
            } else {
                resolved.values.append((slot, .null))
                resolved.pending.append((slot, value, wait))
            }
        }
        return resolved
    }

    /// The target of a foreign key on an identity column, where it is missing.
    private func naturalTarget(
        _ table: EntityTable, _ column: EntityColumn, _ value: Value
    ) throws -> (entity: Entity, identity: StableID)? {
        guard !value.isNull, column.reference == nil,
            let key = table.entity.foreignKeys.first(where: { $0.columns == [column.name] }),
            let target = context.catalog[key.target], target.identityColumns.map(\.name) == key.targetColumns
        else { return nil }
        let identity = StableID(values: [value])
        let found = context.table(target)
        let isThere =
            try found.recordsNames ? found.hasRow(db, declaring: [value]) : found.find(db, identity) != nil
        return isThere ? nil : (target, identity)
    }

    // MARK: Pending references

    func savePending(_ table: EntityTable, _ identity: StableID, _ resolved: Resolved) throws {
        for slot in resolved.settled { try forgetPending(table.entity, identity, slot: slot) }
        guard !resolved.pending.isEmpty else { return }
        for (slot, _, _) in resolved.pending { try forgetPending(table.entity, identity, slot: slot) }
        let save = try context.statement(
            db,
            "INSERT OR REPLACE INTO _martlet_pending(entity, ident, slot, value, wait, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        )
        for (slot, value, wait) in resolved.pending {
            save.bind(1, table.entity.id)
            save.bind(2, blob: identity.bytes)
            save.bind(3, Int64(slot))
            save.bind(4, blob: StableID(values: [value]).bytes)
            save.bind(5, blob: wait)
            save.bind(6, context.now())
            try save.run()
        }
        context.pendingCount += Int64(resolved.pending.count)
    }

    func pending(_ entity: Entity, _ identity: StableID) throws -> [(Int, Value)] {
        guard context.pendingCount > 0 else { return [] }
        let find = try context.statement(
            db, "SELECT slot, value FROM _martlet_pending WHERE entity = ?1 AND ident = ?2")
        find.bind(1, entity.id)
        find.bind(2, blob: identity.bytes)
        var found: [(Int, Value)] = []
        while try find.step() {
            found.append((Int(find.integer(0)), try StableID(bytes: find.blob(1)).values().first ?? .null))
        }
        return found
    }

    private func forgetPending(_ entity: Entity, _ identity: StableID, slot: Int) throws {
        guard context.pendingCount > 0 else { return }
        let forget = try context.statement(
            db, "DELETE FROM _martlet_pending WHERE entity = ?1 AND ident = ?2 AND slot = ?3")
        forget.bind(1, entity.id)
        forget.bind(2, blob: identity.bytes)
        forget.bind(3, Int64(slot))
        try forget.run()
        context.pendingCount -= Int64(forget.changes)
    }

    func forgetPending(_ entity: Entity, _ identity: StableID) throws {
        guard context.pendingCount > 0 else { return }
        let forget = try context.statement(db, "DELETE FROM _martlet_pending WHERE entity = ?1 AND ident = ?2")
        forget.bind(1, entity.id)
        forget.bind(2, blob: identity.bytes)
        try forget.run()
        context.pendingCount -= Int64(forget.changes)
    }

    // MARK: Settling

    /// Lets go on what waited for something that happened in this transaction, until nothing more follows.
    func settle() throws {
        while true {
            if let name = context.arrived.popLast() {
                try settle(name)
            } else if let entity = context.freedEntities.min() {
                context.freedEntities.remove(entity)
                for name in try shadows.waiting(entity, .unique) { try retry(name) }
            } else if let orphan = orphans.popLast() {
                try settle(orphan)
            } else {
                return try journalYielded()
            }
        }
    }

    private func settle(_ name: RowName) throws {
        guard context.shadowCount > 0 || context.pendingCount > 0 else { return }
        try retry(name)
        let wait = WaitKey.target(name.entity, name.identity)
        for waiting in try shadows.waiting(for: wait) { try retry(waiting) }
        guard context.pendingCount > 0 else { return }
        let find = try context.statement(db, "SELECT entity, ident, slot, value FROM _martlet_pending WHERE wait = ?1")
        find.bind(1, blob: wait)
        var found: [(RowName, Int, Value)] = []
        while try find.step() {
            let child = RowName(entity: find.integer(0), identity: StableID(bytes: find.blob(1)))
            found.append((child, Int(find.integer(2)), try StableID(bytes: find.blob(3)).values().first ?? .null))
        }
        for (child, slot, value) in found {
            guard let entity = context.catalog[child.entity], isKnown(value) else { continue }
            let table = context.table(entity)
            guard let row = try table.find(db, child.identity),
                let resolved = try resolve(table, child.identity, [(slot, value)], isFinal: false)
            else { continue }
            let before = try oldValues(table, row.address)
            let written = try write(table, child.identity, row.address, row.clocks, resolved.values)
            if case .done = written {
                try savePending(table, child.identity, resolved)
                try logUpdate(table, row.address, resolved.values, time: context.now(), before: before)
            } else {
                try keepAside(table, child.identity, try evict(table, row, child.identity), written)
            }
        }
    }

    /// Tries once more to apply a row that is kept aside.
    func retry(_ name: RowName) throws {
        guard let entity = context.catalog[name.entity] else { return }
        let table = context.table(entity)
        guard let shadow = try shadows.load(table, name.identity), shadow.values.values.allSatisfy(isKnown) else {
            return
        }
        guard let found = try table.find(db, name.identity) else {
            if shadow.clocks.isAlive { _ = try materialize(table, name.identity, shadow, isFinal: true) }
            return
        }
        // The row is here: what is kept aside are changes of it.
        let since = try shadows.since(shadow)
        try shadows.remove(shadow)
        let changes = Dictionary(
            grouping: shadow.values, by: { shadow.clocks.exceptions[$0.key] ?? shadow.clocks.inserted ?? .zero })
        // In one order on every run: what is written first can decide which integer key a row gets.
        for (stamp, columns) in changes.sorted(by: { $0.key < $1.key }) where stamp != .zero {
            let change = RemoteChange(
                table: table, kind: .update, identity: name.identity, stamp: stamp,
                columns: columns.sorted { $0.key < $1.key }.map {
                    RemoteColumn(slot: $0.key, value: $0.value, replaces: stamp.time)
                },
                replaces: .zero)
            _ = try apply(change, into: found)
        }
        if let id = shadow.id, let since { try shadows.restore(name, id: id, since: since) }
    }

    /// False for a reference into a table that is no longer tracked.
    private func isKnown(_ value: Value) -> Bool {
        guard case .reference(let reference) = value else { return true }
        return context.catalog[reference.entity] != nil
    }

    private func apply(_ change: RemoteChange, into found: EntityTable.Found) throws -> Bool {
        // A change before this one may have taken it out of its table.
        guard let current = try change.table.find(db, change.identity) else {
            return try mergeAbsent(change, isFinal: true)
        }
        return try merge(change, into: current, isFinal: true)
    }

    /// Rows that refer to one that is gone: their reference waits for it, or they do.
    private func settle(_ orphan: Orphan) throws {
        // It came back, and always to the integer key that it had.
        if try context.table(orphan.entity).find(db, orphan.identity) != nil { return }
        for entity in context.catalog.entities {
            for key in entity.foreignKeys
            where key.columns.count == 1 && context.catalog[key.target]?.id == orphan.entity.id {
                guard let column = entity.column(named: key.columns[0]) else { continue }
                let table = context.table(entity)
                let pointer: Value
                let reference: Value
                var awaited = orphan
                if column.reference != nil {
                    guard let row = orphan.row else { continue }
                    pointer = .integer(row)
                    reference = .reference(Reference(entity: orphan.entity.name, identity: orphan.identity))
                } else {
                    guard orphan.entity.identityColumns.map(\.name) == key.targetColumns,
                        let value = orphan.values[orphan.entity.identityColumns[0].slot]
                    else { continue }
                    pointer = value
                    reference = value
                    // Whichever row has the value will do.
                    if context.table(orphan.entity).recordsNames {
                        if try context.table(orphan.entity).hasRow(db, declaring: [value]) { continue }
                        awaited.identity = StableID(values: [value])
                    }
                }
                for (child, found) in try children(table, column, pointer) {
                    try detach(table, column, child, found, from: awaited, reference: reference)
                }
            }
        }
    }

    /// The rows that hold the value, found by what is in the table: their IDs may name a row that is gone.
    private func children(
        _ table: EntityTable, _ column: EntityColumn, _ pointer: Value
    ) throws -> [(StableID, EntityTable.Found)] {
        let entity = table.entity
        let names = entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name)
        let find = try context.statement(
            db,
            "SELECT \(names.map(\.quotedName).joined(separator: ", ")) FROM \(entity.name.quotedName) WHERE \(column.name.quotedName) = ?1"
        )
        find.bind(1, pointer)
        var rows: [[Value]] = []
        while try find.step() { rows.append(names.indices.map { find.value(Int32($0)) }) }
        return try rows.compactMap { values in
            let address: RowAddress
            let identity: StableID?
            if entity.isKeyedByInteger {
                guard case .integer(let row) = values[0] else { return nil }
                address = .key(row)
                identity = try context.resolver.identity(db, entity, row: row)
            } else {
                address = .identity(values)
                identity = try context.resolver.identity(db, entity, localValues: values)
            }
            guard let identity else { return nil }
            let clocks = try table.clocks(db, row: address.row, identity) ?? RowClocks(inserted: .zero)
            return (identity, EntityTable.Found(address: address, clocks: clocks))
        }
    }

    private func detach(
        _ table: EntityTable, _ column: EntityColumn, _ child: StableID, _ found: EntityTable.Found,
        from orphan: Orphan,
        reference: Value
    ) throws {
        let wait = WaitKey.target(orphan.entity.id, orphan.identity)
        if !column.isNotNull, !table.entity.identityColumns.contains(column) {
            let null: [(slot: Int, value: Value)] = [(column.slot, .null)]
            let before = try oldValues(table, found.address)
            if case .done = try write(table, child, found.address, found.clocks, null) {
                try logUpdate(table, found.address, null, time: context.now(), before: before)
                return try savePending(table, child, Resolved(pending: [(column.slot, reference, wait)]))
            }
        }
        var shadow = try evict(table, found, child)
        // It may have been deleted itself, in words that could not be followed once its target was gone.
        if let deleted = try context.tombstone(db, table.entity.id, child) { _ = shadow.clocks.delete(at: deleted) }
        guard shadow.clocks.isAlive else { return try bury(table, child, shadow) }
        let detail = "\(table.entity.name).\(column.name) refers to a row of \(orphan.entity.name)"
        try shadows.save(table, child, shadow, .missingTarget, detail: detail, wait: wait)
    }
}
