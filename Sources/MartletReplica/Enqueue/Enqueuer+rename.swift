import GRDB
package import MartletCore
import MartletMerge
package import MartletStore
package import MartletWire

extension Enqueuer {
    /// Enqueues a change of identity: a delete and an insert on the wire, while the row stays here.
    ///
    /// - Parameter declared: the ID that the columns make up, if another row has it.
    package func stampRename(
        _ change: LogChange, from old: StableID, to new: StableID, declared: StableID? = nil,
        _ wire: inout OutgoingChanges
    ) throws {
        let entity = change.entity
        let table = context.table(entity)
        let wasUnpublished = try stampDelete(of: old, change, &wire)
        let isUnpublished = try isIgnored(entity) || wasUnpublished && withholds(change)
        let pending = try movePending(change, from: old, to: new, keeping: { !change.isChanged($0) })
        // Values that a cascade set under the new ID are earlier in the log, and yet newer.
        let early = try early.take(db, entity, declared ?? new)
        if !early.isEmpty { try forgetPending(entity, new, Array(early.keys)) }
        var insert = change
        insert.values = change.values.map { column, value in
            (column, early[column.slot] ?? pending[column.slot] ?? value)
        }
        var clocks = RowClocks(deleted: try context.tombstones.find(db, entity.id, new))
        let stamp = tick(change, isUnpublished: isUnpublished)
        _ = clocks.insert(change.values.map(\.column.slot), of: table.slots, at: stamp)
        try table.saveClocks(db, row: change.row, new, clocks)
        if !isUnpublished { try add(.insert, insert, new, stamp, to: &wire) }
        context.noteArrival(entity, new)
        noteFreed(entity)
        try stampFollowers(of: change, from: old, to: new, &wire)
        noteLeftName(change)
    }

    /// Enqueues what follows from a row's new ID: changes of the rows that refer to it, and of rows with an ID that
    /// contains it.
    package func stampFollowers(
        of change: LogChange, from old: StableID, to new: StableID, _ wire: inout OutgoingChanges
    ) throws {
        var held: [Int64] = []
        if let row = change.row {
            let left = try leftKeys(change, row, old)
            for key in left { try context.numbers.retire(db, change.entity, row: key, until: change.id, new) }
            held = [row] + left
        }
        for row in held { try stampReferrers(to: change.entity, row: row, from: old, new, change, &wire) }
        try stampNamesakes(change.entity, from: old, to: new, change, holding: held, &wire)
    }

    /// Returns keys that the row has left and no other row has taken. With foreign keys switched off, rows may still
    /// hold them: they mean this row.
    private func leftKeys(_ change: LogChange, _ row: Int64, _ name: StableID) throws -> [Int64] {
        let table = context.table(change.entity)
        guard table.isReferenced else { return [] }
        return try keys.formerKeys(db, of: row, in: change.entity, through: change.id).filter { key in
            try table.keptIdentity(db, row: key) == nil
                && context.resolver.retired(db, change.entity, row: key, after: 0) == name
        }
    }

    /// - Returns: true if a filter kept the row on this node.
    @discardableResult
    package func stampDelete(of old: StableID, _ change: LogChange, _ wire: inout OutgoingChanges) throws -> Bool {
        let table = context.table(change.entity)
        let clocks = try table.clocks(db, row: change.row, old)
        var delete = change
        delete.values = []
        try bury(delete, old, clocks, &wire)
        try table.removeClocks(db, row: change.row, old)
        if let row = change.row { try context.numbers.retire(db, change.entity, row: row, until: change.id, old) }
        try stampRemaining(old, delete, &wire)
        return clocks?.isUnpublished ?? false
    }

    /// Moves pending references to the row's new ID, except those that the change set. The insert under the new ID
    /// overrules those of another row that has this ID so far.
    ///
    /// - Parameter isShared: true if another row has the former ID, too, and what is pending under it.
    /// - Returns: the references, by slot.
    private func movePending(
        _ change: LogChange, from old: StableID, to new: StableID, isShared: Bool = false,
        keeping: (EntityColumn) -> Bool
    ) throws -> [Int: Value] {
        guard !context.pendingReferences.isEmpty else { return [:] }
        let entity = change.entity
        let slots = context.table(entity).slots
        try overrulePending(
            entity, new, slots, of: RowClocks(), at: Stamp(time: context.clock.last, node: context.node))
        if try isShared || rowSharing(old, of: context.table(entity), besides: change.row) != nil { return [:] }
        try forgetPending(entity, old, entity.columns.filter { !keeping($0) }.map(\.slot))
        let found = try context.pendingReferences.find(db, entity, old)
        let values = Dictionary(found, uniquingKeysWith: { $1 })
        try context.pendingReferences.move(db, entity, from: old, to: new)
        return values
    }

    /// Enqueues changes for rows that refer by integer key to a row with a new ID: they stay the same here, but their
    /// reference changes on other nodes.
    ///
    /// - Parameters:
    ///   - before: if given, references that were set later are skipped, since other nodes have them right.
    ///   - place: the log ID up to which rows have their clocks, under the keys that they have there. Nil: that of the
    ///     change.
    package func stampReferrers(
        to target: Entity, row: Int64, from old: StableID, _ identity: StableID, _ change: LogChange,
        before: HybridTime? = nil, at place: Int64? = nil, _ wire: inout OutgoingChanges
    ) throws {
        let was = Reference(entity: target.name, identity: old)
        for entity in context.catalog.entities {
            let named = entity.identityColumns
            let keeps = context.table(entity).recordsNames
            for column in entity.columns
            where column.reference == target.name && (keeps || !named.contains(column)) {
                let names = entity.integerKey.map { [$0] } ?? named.map(\.name)
                let find = try PreparedStatement(
                    db,
                    """
                    SELECT \(names.map(\.quotedName).joined(separator: ", ")) FROM \(entity.name.quotedName)
                    WHERE \(column.name.quotedName) = ?1
                    """)
                find.bind(1, row)
                let table = context.table(entity)
                while try find.step() {
                    var key: Int64?
                    if entity.isKeyedByInteger {
                        key = try keys.key(db, of: find.integer(0), in: entity, at: place ?? change.id)
                        if key == nil { continue }
                    }
                    let child =
                        try key.map { try table.keptIdentity(db, row: $0) }
                        ?? declaredIdentity(
                            entity, named.indices.map { (named[$0], find.value(Int32($0))) }, at: change.id)
                    // That row changes its own ID.
                    if let child, named.contains(column), try isNamed(child, in: entity, after: was) { continue }
                    guard let child, var clocks = try table.clocks(db, row: key, child) else { continue }
                    if let before, let set = clocks.stamp(of: column.slot), set.time > before { continue }
                    let isUnpublished = isIgnored(entity) || clocks.isUnpublished
                    let stamp = tick(change, isUnpublished: isUnpublished)
                    if isUnpublished, !clocks.isUnpublished { try noteUnpublishedOfKnown() }
                    let replaced = clocks.stamp(of: column.slot)
                    _ = clocks.update([column.slot], at: stamp)
                    try table.saveClocks(db, row: key, child, clocks)
                    if isUnpublished || column.isLocal { continue }
                    var update = change
                    update.entity = entity
                    update.row = key
                    update.values = [(column, .reference(Reference(entity: target.name, identity: identity)))]
                    try add(.update, update, child, stamp, to: &wire) { _ in replaced }
                }
            }
        }
    }

    /// Returns the present values of the identity columns of the row that had this ID after the change.
    private func currentValues(_ entity: Entity, _ identity: StableID, after change: Int64) throws -> [Value]? {
        try context.resolver.localValues(entity, identity) { try currentRow($0, $1, after: change) }
    }

    private func currentRow(_ target: Entity, _ identity: StableID, after change: Int64) throws -> Int64? {
        guard context.table(target).recordsNames else { return try context.resolver.row(db, target, identity) }
        let find = try context.statement(db, "SELECT row FROM \(InternalName.side(target.id)) WHERE ident = ?1")
        find.bind(1, blob: identity.bytes)
        return try find.first { $0.integer(0) }.flatMap { try keys.currentKey(db, of: $0, in: target, after: change) }
    }

    /// Returns true for a row that doesn't hold the key that its ID comes from: its target moved and took its
    /// references along, or another row holds the key now.
    private func holdsOther(
        than key: Int64, _ table: EntityTable, _ ident: StableID, row: Int64?, _ target: Reference,
        at change: LogChange, _ place: Int64
    ) throws -> Bool {
        let entity = table.entity
        let address = try currentAddress(entity, ident, row: row, after: change.id)
        if let current = try address.flatMap({ try table.read(db, $0) }) {
            let isOther = zip(entity.identityColumns, try ident.values()).allSatisfy { column, value in
                value != .reference(target) || current[column.slot].flatMap(column.referredRow) != key
            }
            guard isOther, row == nil else { return isOther }
        } else if row != nil {
            return false
        }
        // If no row holds the key, the ID stays: the log has later changes of a row that held the key, which find it by
        // that ID.
        guard case .identity(let values)? = try addressHolding(key, of: target, entity, ident) else { return true }
        // The row that holds the key has an ID already, has come only since, or is this one, which kept the key when
        // its target moved on.
        if let name = try context.resolver.identity(db, entity, localValues: values),
            try table.clocks(db, row: nil, name) != nil
        {
            return true
        }
        return try hasCome(entity, values, after: place)
    }

    /// Returns true if a row without an integer key was inserted with these values, or got them, after this log ID.
    private func hasCome(_ entity: Entity, _ values: [Value], after place: Int64) throws -> Bool {
        let slots = entity.identityColumns.map(\.slot)
        func isHeld(_ alias: String) -> String {
            slots.enumerated().map { "\(alias).c\($1) IS ?\($0 + 3)" }.joined(separator: " AND ")
        }
        let find = try context.statement(
            db,
            """
            SELECT 1 FROM \(InternalName.log) AS l WHERE l.id > ?1 AND l.e = ?2 AND \(isHeld("l"))
            AND (l.k = \(ChangeKind.insert.code) OR l.k = \(ChangeKind.update.code) AND EXISTS (
              SELECT 1 FROM \(InternalName.log) AS b WHERE b.id = l.id - 1 AND b.e = ?2
              AND b.k = \(ChangeKind.Mark.before) AND NOT (\(isHeld("b")))))
            LIMIT 1
            """)
        find.bind(1, place)
        find.bind(2, entity.id)
        for (index, value) in values.enumerated() { find.bind(Int32(index + 3), value) }
        return try find.first { _ in true } ?? false
    }

    /// Returns the present place of the row that had this ID after the change. Nil if it is gone.
    package func currentAddress(
        _ entity: Entity, _ identity: StableID, row: Int64?, after change: Int64
    ) throws -> RowAddress? {
        guard let row else { return try currentValues(entity, identity, after: change).map { .identity($0) } }
        return try keys.currentKey(db, of: row, in: entity, after: change).map { .key($0) }
    }

    /// Returns the place of a row without an integer key whose ID contains a removed row, and which still holds that
    /// row's integer key.
    private func addressHolding(
        _ key: Int64, of target: Reference, _ entity: Entity, _ identity: StableID
    ) throws -> RowAddress? {
        let columns = entity.identityColumns
        let parts = try identity.values()
        guard parts.count == columns.count, let place = parts.firstIndex(of: .reference(target)) else { return nil }
        let find = try context.statement(
            db,
            """
            SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(entity.name.quotedName)
            WHERE \(columns[place].name.quotedName) = ?1
            """)
        find.bind(1, key)
        var rows: [[Value]] = []
        while try find.step() { rows.append(columns.indices.map { find.value(Int32($0)) }) }
        let held = try rows.first { row in
            try columns.indices.allSatisfy { index in
                guard case .reference(let reference) = parts[index] else { return row[index] == parts[index] }
                let column = columns[index]
                guard let held = column.referredRow(row[index]), let referred = context.catalog[reference.entity] else {
                    return false
                }
                if reference == target, held == key { return true }
                return try context.resolver.identity(db, referred, row: held) == reference.identity
                    || formerTargets(column, row[index]).contains(parts[index])
            }
        }
        return held.map { .identity($0) }
    }

    /// Gives rows a new ID whose identity contains the row that got one.
    ///
    /// - Parameters:
    ///   - held: the integer keys by which they may refer to it. If there are none, they hold its present key.
    ///   - key: if given, only rows that hold this integer key, which another row has taken over.
    ///   - place: the log ID up to which rows have their IDs. Nil: that of the change.
    package func stampNamesakes(
        _ target: Entity, from old: StableID, to new: StableID, _ change: LogChange, holding held: [Int64] = [],
        takenOver key: Int64? = nil, at place: Int64? = nil, _ wire: inout OutgoingChanges
    ) throws {
        let was = Reference(entity: target.name, identity: old)
        let became = Reference(entity: target.name, identity: new)
        for entity in context.catalog.entities
        where entity.identityColumns.contains(where: { $0.reference == target.name }) {
            let table = context.table(entity)
            let names = try currentLast(
                table.names(db, containing: StableID(values: [.reference(was)]).bytes), table, target, held.first,
                change)
            for (index, (row, ident)) in names.enumerated() {
                let values = try ident.values().map { $0 == .reference(was) ? .reference(became) : $0 }
                // A row that refers to itself in the end keeps its ID: each new one would contain the one before.
                guard var renamed = StableID(columns: values, mayBePart: entity.integerKey != nil), renamed != ident,
                    !renamed.contains(Reference(entity: entity.name, identity: ident))
                else { continue }
                if let key, try holdsOther(than: key, table, ident, row: row, was, at: change, place ?? change.id) {
                    continue
                }
                if table.recordsNames {
                    guard try isNamed(ident, in: entity, after: was) else { continue }
                    if try table.hasName(db, renamed) {
                        renamed = context.hiddenIDs.renamed(
                            entity.name, row: row ?? 0, change: change.id, time: change.time)
                    }
                }
                var namesake = change
                namesake.entity = entity
                namesake.row = row
                let wasUnpublished = try stampDelete(of: ident, namesake, &wire)
                let isUnpublished = isIgnored(entity) || wasUnpublished
                let isShared = names[(index + 1)...].contains { $0.identity == ident }
                let pending = try movePending(
                    namesake, from: ident, to: renamed, isShared: isShared, keeping: { _ in true })
                let stamp = tick(change, isUnpublished: isUnpublished)
                var clocks = RowClocks(deleted: try context.tombstones.find(db, entity.id, renamed))
                _ = clocks.insert(table.slots, of: table.slots, at: stamp)
                try table.saveClocks(db, row: row, renamed, clocks)
                // If the row is gone by now, its delete or its next change of identity is later in the log.
                if !isUnpublished,
                    let current = try currentRow(table, renamed, row: row, became, holding: held, at: change)
                {
                    // The row's present values may be from later in the log: another part of its ID changes only then,
                    // or its target moves.
                    let named = table.recordsNames ? [:] : try table.identityValues(renamed)
                    namesake.values = entity.columns.map { column in
                        (column, named[column.slot] ?? pending[column.slot] ?? current[column.slot] ?? .null)
                    }
                    try add(.insert, namesake, renamed, stamp, to: &wire)
                }
                context.noteArrival(entity, renamed)
                noteFreed(entity)
                if let row { try stampReferrers(to: entity, row: row, from: ident, renamed, change, &wire) }
                try stampNamesakes(
                    entity, from: ident, to: renamed, change, holding: row.map { [$0] } ?? [], &wire)
            }
        }
    }

    /// Returns the present values of the row that had this ID after the change, even if it refers to its target by a
    /// key that the target has left.
    private func currentRow(
        _ table: EntityTable, _ identity: StableID, row: Int64?, _ target: Reference, holding held: [Int64],
        at change: LogChange
    ) throws -> [Int: Value]? {
        if let address = try currentAddress(table.entity, identity, row: row, after: change.id),
            let found = try table.read(db, address)
        {
            return found
        }
        guard row == nil else { return nil }
        for key in held {
            if let address = try addressHolding(key, of: target, table.entity, identity) {
                return try table.read(db, address)
            }
        }
        return nil
    }
}
