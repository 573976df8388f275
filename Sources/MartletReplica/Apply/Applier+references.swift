import GRDB
package import MartletCore
import MartletMerge
package import MartletStore
import MartletWire

extension Applier {
    /// Values as this file stores them.
    package struct Resolved {
        package var values: [(slot: Int, value: Value)] = []
        /// References whose target is missing: the column is null meanwhile.
        package var pending: [(slot: Int, value: Value, wait: [UInt8])] = []
        /// A reference whose target is missing, in a column that may not be null.
        package var blocked: (detail: String, wait: [UInt8])?
        /// Columns whose pending reference, if there was one, is settled.
        package var settled: [Int] = []

        /// What the row waits for if it can't be in its table while its references are null. With several of them, any
        /// one may be what it needs.
        package var wait: [UInt8]? { pending.count > 1 ? WaitKey.anything : pending.first?.wait }

        /// Records that the column refers to a missing row.
        fileprivate mutating func lacks(
            _ value: Value, _ column: EntityColumn, of entity: Entity, _ target: Entity, _ wait: [UInt8]
        ) {
            guard entity.mayWait(column) else {
                blocked = ("\(entity.name).\(column.name) refers to a row of \(target.name)", wait)
                return
            }
            values.append((column.slot, .null))
            pending.append((column.slot, value, wait))
        }
    }

    /// Makes values local: references become the integer keys of this file, and those whose target is missing become
    /// pending.
    ///
    /// - Parameters:
    ///   - newRow: the integer key that the row is about to get, for references to itself.
    ///   - address: where the row is, if it is in its table. Columns that are not being set also decide whether a key
    ///     of several columns has its target.
    /// - Returns: nil if a target is missing and `isFinal` is false.
    package func resolve(
        _ table: EntityTable, _ identity: StableID, _ values: [(Int, Value)], isFinal: Bool, newRow: Int64? = nil,
        at address: RowAddress? = nil
    ) throws -> Resolved? {
        var resolved = Resolved()
        resolved.values.reserveCapacity(values.count)
        for (slot, value) in values {
            guard let column = table.columnsBySlot[slot] else { continue }
            guard case .reference(let reference) = value else {
                if let name = column.reference, !value.isNull, let target = context.catalog[name] {
                    // At the origin the column is not a reference, so its value is not the number of a row here.
                    guard isFinal else { return nil }
                    let wait = WaitKey.target(target.id, StableID(values: [value]))
                    resolved.lacks(value, column, of: table.entity, target, wait)
                    continue
                }
                resolved.values.append((slot, value))
                resolved.settled.append(slot)
                continue
            }
            guard let target = context.catalog[reference.entity] else {
                throw UnknownSchema(detail: "table \(reference.entity)")
            }
            var row = try context.resolver.row(db, target, reference.identity)
            if row == nil, target.id == table.entity.id, reference.identity == identity { row = newRow }
            if row == nil { row = assumed.rows[RowIdentity(entity: target.id, identity: reference.identity)] }
            if let row {
                resolved.values.append((slot, .integer(row)))
                resolved.settled.append(slot)
                continue
            }
            guard isFinal else { return nil }
            resolved.lacks(value, column, of: table.entity, target, WaitKey.target(target.id, reference.identity))
        }
        guard let keys = context.valueKeys.byEntity[table.entity.id] else { return resolved }
        return try check(keys, table, identity, values, &resolved, isFinal: isFinal, newRow: newRow, at: address)
            ? resolved : nil
    }

    /// Makes values of foreign keys pending if their target is missing.
    ///
    /// - Returns: false if one is missing and `isFinal` is false.
    private func check(
        _ keys: [ValueKey], _ table: EntityTable, _ identity: StableID, _ values: [(Int, Value)],
        _ resolved: inout Resolved, isFinal: Bool, newRow: Int64?, at address: RowAddress?
    ) throws -> Bool {
        let set = Set(values.map(\.0))
        var row: [Int: Value]?
        for key in keys where !set.isDisjoint(with: key.slots) {
            var local = try row ?? address.flatMap { try table.read(db, $0) } ?? [:]
            for (slot, value) in resolved.values { local[slot] = value }
            row = local
            let claimed = key.slots.map { local[$0] ?? .null }
            guard !claimed.contains(.null), try !hasTarget(key, claimed) else { continue }
            if assumed.hasTarget(key, claimed) { continue }
            if key.target.id == table.entity.id {
                let own = key.targetSlots.map { slot in
                    slot.map { local[$0] ?? .null } ?? (address?.row ?? newRow).map { .integer($0) } ?? .null
                }
                if key.refersToItself(claimed, having: own) { continue }
            }
            guard isFinal else { return false }
            let wait = key.wait(for: claimed)
            guard let slot = key.yielding?.slot else {
                resolved.blocked = (key.detail, wait)
                continue
            }
            let value =
                try values.first { $0.0 == slot }?.1
                ?? portableValues(table, identity, [slot: local[slot] ?? .null])[slot] ?? .null
            resolved.values.removeAll { $0.slot == slot }
            resolved.settled.removeAll { $0 == slot }
            resolved.values.append((slot, .null))
            resolved.pending.append((slot, value, wait))
        }
        return true
    }

    package func hasTarget(_ key: ValueKey, _ values: [Value]) throws -> Bool {
        let find = try context.statement(db, key.findTarget)
        for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
        return try find.first { _ in true } ?? false
    }

    /// Returns the row's pending references that must be resolved again when these columns are set, because columns of
    /// one foreign key are resolved together.
    package func waitingBeside(_ table: EntityTable, _ identity: StableID, _ slots: [Int]) throws -> [(Int, Value)] {
        guard !context.pendingReferences.isEmpty, let keys = context.valueKeys.byEntity[table.entity.id] else {
            return []
        }
        let concerned = keys.filter { !Set($0.slots).isDisjoint(with: slots) }.flatMap(\.slots)
        return try pending(table.entity, identity).filter {
            concerned.contains($0.0) && !slots.contains($0.0) && isKnown($0.1)
        }
    }

    // MARK: Pending references

    package func savePending(_ table: EntityTable, _ identity: StableID, _ resolved: Resolved) throws {
        for slot in resolved.settled { try context.pendingReferences.remove(db, table.entity, identity, slot: slot) }
        try context.pendingReferences.save(db, table.entity, identity, resolved.pending, now: context.now)
    }

    package func pending(_ entity: Entity, _ identity: StableID) throws -> [(Int, Value)] {
        try context.pendingReferences.find(db, entity, identity)
    }

    package func forgetPending(_ entity: Entity, _ identity: StableID) throws {
        try context.pendingReferences.remove(db, entity, identity)
    }

    // MARK: Settling

    /// Applies what waited for something that happened in this transaction, until nothing more follows.
    package func settle() throws {
        while true {
            if let wait = wakes.popLast() {
                try wake(wait)
            } else if let name = context.news.takeArrival() {
                try settle(name)
            } else if let entity = context.news.takeFreed() {
                for name in try strongestFirst(entity) where mayReturn(name) { try retry(name) }
            } else if let orphan = orphans.popLast() {
                try settle(orphan)
            } else if let name = blocked.popLast() {
                try closeCycle(name)
            } else {
                return try journalYielded()
            }
        }
    }

    private func settle(_ name: RowIdentity) throws {
        guard context.pendingRows.count > 0 || !context.pendingReferences.isEmpty else { return }
        // The row may have left again since it came.
        try retryWaiting(name)
        for wait in try waits(for: name) { try wake(wait) }
        for waiting in try strongestFirst(pendingRows.waiting(for: WaitKey.anything)) where waiting != name {
            try retryWaiting(waiting)
        }
    }

    /// Retries a row because a target came, unless the row would only have to give way again.
    private func retryWaiting(_ name: RowIdentity) throws {
        if !mayReturn(name), let table = context.catalog[name.entity].map(context.table),
            let pendingRow = try pendingRows.load(table, name.identity), try pendingRows.reason(pendingRow) == .unique
        {
            return
        }
        try retry(name)
    }

    /// Retries everything that waits for a target.
    private func wake(_ wait: [UInt8]) throws {
        for waiting in try strongestFirst(pendingRows.waiting(for: wait)) { try retryWaiting(waiting) }
        for child in try strongestFirst(pendingRows("wait = ?1", { $0.bind(1, blob: wait) })) {
            try retryPending(child)
        }
    }

    /// Retries all pending rows and references.
    package func retryAll() throws {
        for name in try pendingRows.all() {
            try retry(name)
            try settle()
        }
        for name in try pendingRows("1", { _ in }) { try retryPending(name) }
        try settle()
    }

    /// Retries everything that waits for a constraint: a schema change may have removed or changed it.
    package func retryConstrained() throws {
        for entity in context.catalog.entities {
            let names = try pendingRows.waiting(entity.id, .constraint) + pendingRows.waiting(entity.id, .missingTarget)
            for name in try names + strongestFirst(entity.id) {
                try retry(name)
                try settle()
            }
        }
        for name in try pendingRows("1", { _ in }) { try retryPending(name) }
        try settle()
    }

    /// Forgets the arrival of rows that nothing waits for.
    package func dropIdleArrivals() throws {
        guard try pendingRows.waiting(for: WaitKey.anything).isEmpty else { return }
        try context.news.keepArrivals { name in
            guard let entity = context.catalog[name.entity] else { return false }
            if try pendingRows.load(context.table(entity), name.identity) != nil { return true }
            return try waits(for: name).contains { wait in
                try !pendingRows.waiting(for: wait).isEmpty
                    || !pendingRows("wait = ?1", { $0.bind(1, blob: wait) }).isEmpty
            }
        }
    }

    /// Returns the rows with pending references for which the condition holds.
    private func pendingRows(_ condition: String, _ bind: (PreparedStatement) -> Void) throws -> [RowIdentity] {
        try context.pendingReferences.rows(db, condition, bind)
    }

    /// Returns the wait keys that this row satisfies as a target: its ID, and the values in its keys.
    private func waits(for name: RowIdentity) throws -> [[UInt8]] {
        var waits = [WaitKey.target(name.entity, name.identity)]
        guard let keys = context.valueKeys.byTarget[name.entity], let entity = context.catalog[name.entity] else {
            return waits
        }
        let table = context.table(entity)
        guard let found = try table.find(db, name.identity), let row = try table.read(db, found.address) else {
            return waits
        }
        // Earlier versions waited for the declared identity, although the row has kept another ID.
        if table.recordsNames, let declared = table.declaredIdentity(row), declared != name.identity {
            waits.append(WaitKey.target(name.entity, declared))
        }
        for key in keys {
            let values = key.targetValues(row, found.address.row)
            let wait = key.wait(for: values)
            if !values.contains(.null), !waits.contains(wait) { waits.append(wait) }
        }
        return waits
    }

    /// Retries setting the columns of a row whose references are pending.
    package func retryPending(_ name: RowIdentity) throws {
        guard let entity = context.catalog[name.entity] else { return }
        let table = context.table(entity)
        let waiting = try pending(entity, name.identity).filter { isKnown($0.1) }
        guard !waiting.isEmpty, let row = try table.find(db, name.identity),
            let resolved = try resolve(table, name.identity, waiting, isFinal: true, at: row.address),
            resolved.blocked == nil
        else { return }
        let waits = Set(resolved.pending.map(\.slot))
        let values = resolved.values.filter { !waits.contains($0.slot) }
        guard !values.isEmpty else { return try savePending(table, name.identity, resolved) }
        let before = try oldValues(table, row.address)
        let left = try leftKeys(table, row, values.map(\.slot))
        switch try write(table, name.identity, row.address, row.clocks, values) {
        case .done:
            try savePending(table, name.identity, resolved)
            try logUpdate(table, row.address, values, time: context.now(), before: before)
            noteKeys(table, name.identity, values.map(\.slot), left: left)
        case .lostUnique(let winner):
            // The row was in its table without the reference. It may have kept out the very row that brings the
            // reference.
            yieldCounts[name, default: 0] += 1
            let pendingRow = try evict(table, row, name.identity)
            try park(table, name.identity, pendingRow, behind: winner, wait: resolved.wait)
        case let written:
            try makePending(table, name.identity, try evict(table, row, name.identity), written)
        }
    }

    /// Retries a pending row.
    package func retry(_ name: RowIdentity) throws {
        guard let entity = context.catalog[name.entity] else { return }
        let table = context.table(entity)
        guard let pendingRow = try pendingRows.load(table, name.identity), pendingRow.values.values.allSatisfy(isKnown)
        else {
            return
        }
        guard let found = try table.find(db, name.identity) else {
            if pendingRow.clocks.isAlive {
                _ = try materialize(table, name.identity, pendingRow, isFinal: true)
            } else if pendingRow.clocks.deleted != nil {
                try bury(table, name.identity, pendingRow)
            }
            return
        }
        // The row is in its table, so these are pending changes of it.
        let since = try pendingRows.since(pendingRow)
        try pendingRows.remove(pendingRow)
        let changes = Dictionary(
            grouping: pendingRow.values,
            by: { pendingRow.clocks.exceptions[$0.key] ?? pendingRow.clocks.inserted ?? .zero })
        // In the same order on every run: the first write can decide which integer key a row gets.
        for (stamp, columns) in changes.sorted(by: { $0.key < $1.key }) where stamp != .zero {
            let change = RemoteChange(
                table: table, kind: .update, identity: name.identity, stamp: stamp,
                columns: columns.sorted { $0.key < $1.key }.map {
                    RemoteColumn(slot: $0.key, value: $0.value, replaces: stamp.time)
                },
                replaces: .zero)
            _ = try apply(change, into: found)
        }
        if let id = pendingRow.id, let since { try pendingRows.restore(name, id: id, since: since) }
    }

    /// Returns false for a reference to a row of a table that is no longer tracked.
    package func isKnown(_ value: Value) -> Bool { untracked(value) == nil }

    /// Returns the table that a reference names, if that table is not tracked. Nil for any other value.
    package func untracked(_ value: Value) -> String? {
        guard case .reference(let reference) = value, context.catalog[reference.entity] == nil else { return nil }
        return reference.entity
    }

    private func apply(_ change: RemoteChange, into found: EntityTable.Found) throws -> Bool {
        // A previous change may have taken it out of its table.
        guard let current = try change.table.find(db, change.identity) else {
            return try mergeAbsent(change, isFinal: true)
        }
        return try merge(change, into: current, isFinal: true)
    }

    /// Handles rows that refer to a removed row, or to a key that a row has left: their reference becomes pending, or
    /// they do.
    package func settle(_ orphan: Orphan) throws {
        noteTargetGone(orphan.entity)
        if !orphan.isHere, let row = orphan.row {
            // A row that came back usually has its former integer key, and perhaps other values.
            let found = try context.table(orphan.entity).find(db, orphan.identity)
            if found == nil || found?.address.row != row {
                try detachReferences(to: orphan, row)
                if found != nil { context.noteArrival(orphan.entity, orphan.identity) }
            }
        }
        for key in context.valueKeys.byTarget[orphan.entity.id] ?? [] {
            let values = key.targetValues(orphan.values, orphan.row)
            if !values.contains(.null) { try detach(key, from: values) }
        }
    }

    /// Retries rows that wait for a unique key: they may lack a target now, and must then wait for that first.
    package func noteTargetGone(_ entity: Entity) {
        guard context.pendingRows.count > 0 else { return }
        for other in context.catalog.entities
        where other.foreignKeys.contains(where: { context.catalog[$0.target]?.id == entity.id }) {
            context.news.note(freed: other.id)
        }
    }

    /// Detaches rows that hold the integer key of a removed row.
    package func detachReferences(to orphan: Orphan, _ row: Int64) throws {
        let reference = Value.reference(Reference(entity: orphan.entity.name, identity: orphan.identity))
        let wait = WaitKey.target(orphan.entity.id, orphan.identity)
        for entity in context.catalog.entities {
            for column in entity.columns where column.reference == orphan.entity.name {
                let table = context.table(entity)
                let waiting = entity.mayWait(column) ? (column.slot, reference) : nil
                let detail = "\(entity.name).\(column.name) refers to a row of \(orphan.entity.name)"
                let condition = "\(column.name.quotedName) = ?1"
                for (child, found) in try rows(table, where: condition, [.integer(row)]) {
                    try detach(table, child, found, waiting, wait: wait, detail: detail)
                }
                try detachWithoutIdentity(table, where: condition, [.integer(row)], column, detail: detail) { _ in wait
                }
            }
        }
    }

    /// Returns the rows for which a condition holds, found by their stored values: their IDs may contain a row that is
    /// gone.
    package func rows(
        _ table: EntityTable, where condition: String, _ values: [Value]
    ) throws -> [(StableID, EntityTable.Found)] {
        let entity = table.entity
        let names = entity.integerKey.map { [$0] } ?? entity.identityColumns.map(\.name)
        let find = try context.statement(
            db,
            """
            SELECT \(names.map(\.quotedName).joined(separator: ", ")) FROM \(entity.name.quotedName) WHERE \(condition)
            """)
        for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
        var rows: [[Value]] = []
        while try find.step() { rows.append(names.indices.map { find.value(Int32($0)) }) }
        return try rows.compactMap { values in
            guard let (address, identity) = try row(table, values) else { return nil }
            let clocks = try table.clocks(db, row: address.row, identity) ?? RowClocks(inserted: .zero)
            return (identity, EntityTable.Found(address: address, clocks: clocks))
        }
    }

    /// Returns the row that has these values in its integer key, or else in its identity columns. Nil for a row without
    /// an ID.
    package func row(_ table: EntityTable, _ values: [Value]) throws -> (RowAddress, StableID)? {
        if table.entity.isKeyedByInteger {
            guard case .integer(let row) = values[0] else { return nil }
            // Prefers the stored ID, which stamped rows have: the columns may refer to a row that is gone.
            let identity = try table.keptIdentity(db, row: row) ?? context.resolver.identity(db, table.entity, row: row)
            return identity.map { (.key(row), $0) }
        }
        let values = Array(values.prefix(table.identityColumns.count))
        return try context.resolver.identity(db, table.entity, localValues: values).map { (.identity(values), $0) }
    }

    /// - Parameter waiting: the column that may be null meanwhile, and its portable value.
    package func detach(
        _ table: EntityTable, _ child: StableID, _ found: EntityTable.Found, _ waiting: (slot: Int, value: Value)?,
        wait: [UInt8], detail: String
    ) throws {
        if try removeNamesake(table, child, found) { return }
        var isRefused = false
        if let waiting {
            let null: [(slot: Int, value: Value)] = [(waiting.slot, .null)]
            let before = try oldValues(table, found.address)
            let left = try leftKeys(table, found, [waiting.slot])
            switch try write(table, child, found.address, found.clocks, null) {
            case .done:
                try logUpdate(table, found.address, null, time: context.now(), before: before)
                try savePending(table, child, Resolved(pending: [(waiting.slot, waiting.value, wait)]))
                noteKeys(table, child, [waiting.slot], left: left)
                // One null column is enough for a key: another column of it that was pending gets its value back.
                guard try !waitingBeside(table, child, [waiting.slot]).isEmpty else { return }
                return try retryPending(RowIdentity(entity: table.entity.id, identity: child))
            case .lostUnique(let winner):
                // Without its target, the row collides with another one. It waits for either of them to come or to go.
                yieldCounts[RowIdentity(entity: table.entity.id, identity: child), default: 0] += 1
                let pendingRow = try evict(table, found, child)
                return try park(table, child, pendingRow, behind: winner, wait: WaitKey.anything)
            case .refused: isRefused = try !pending(table.entity, child).isEmpty
            }
        }
        var pendingRow = try evict(table, found, child)
        // The row may have been deleted itself, under an ID that could not be resolved once its target was gone.
        if let deleted = try context.tombstones.find(db, table.entity.id, child) {
            _ = pendingRow.clocks.delete(at: deleted)
        }
        guard pendingRow.clocks.isAlive else { return try bury(table, child, pendingRow) }
        // If other references of the row are pending, any of them may be enough.
        try block(table, child, pendingRow, detail: detail, wait: isRefused ? WaitKey.anything : wait)
    }

    /// Takes a row out of its table if another row has the same stable ID: this one refers to the key that their target
    /// has left, and the other one to the key that it has now. On other nodes they are one row, with the newest values.
    /// What is pending under the ID is the other row's.
    ///
    /// - Returns: false if no other row has the ID.
    private func removeNamesake(_ table: EntityTable, _ name: StableID, _ found: EntityTable.Found) throws -> Bool {
        guard let other = try table.find(db, name), other.address != found.address,
            try other.address.row.map({ try table.keptIdentity(db, row: $0) == name }) ?? true,
            let values = try table.read(db, found.address)
        else { return false }
        let portable = try portableValues(table, name, values, withPending: false)
        try takeOut(table, found.address, name, values)
        // Rows without integer keys have their clocks by their ID, and so share them.
        guard let row = found.address.row else { return true }
        try table.removeClocks(db, row: row, name)
        let state = RemoteChange(
            table: table, kind: .insert, identity: name, stamp: found.clocks.newest ?? .zero,
            columns: table.slots.compactMap { slot in
                portable[slot].map { RemoteColumn(slot: slot, value: $0, replaces: .zero) }
            },
            replaces: .zero, state: RowState(clocks: found.clocks, unseen: .none))
        return try merge(state, into: other, isFinal: true)
    }

    // MARK: Keys that rows leave

    /// Returns what rows may refer to in this row and lose when these columns change. Nil if there is nothing.
    package func leftKeys(_ table: EntityTable, _ found: EntityTable.Found, _ slots: [Int]) throws -> Orphan? {
        guard let keys = context.valueKeys.byTarget[table.entity.id],
            keys.contains(where: { key in key.targetSlots.contains { $0.map(slots.contains) ?? false } }),
            let values = try table.read(db, found.address)
        else { return nil }
        return Orphan(
            table: table, identity: StableID(values: []), row: found.address.row, values: values, isHere: true)
    }

    /// Records that a row was changed in place: others may have waited for its new values, or lack its former ones, and
    /// its own pending changes may fit now.
    package func noteKeys(_ table: EntityTable, _ identity: StableID, _ slots: [Int], left: Orphan?) {
        if let left { orphans.append(left) }
        if context.pendingRows.count > 0, table.mayFreeKey(slots) { context.news.note(freed: table.entity.id) }
        context.noteArrival(table.entity, identity)
    }
}
