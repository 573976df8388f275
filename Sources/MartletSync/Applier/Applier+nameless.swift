import GRDB
import MartletStore

/// Rows that nothing names: a column of their identity is NULL. No other node knows of them, so that none of them
/// counts where nodes must decide alike: they give way to every row with an ID, and wait on this node. A reference of
/// theirs whose target leaves becomes NULL, and is in the journal.
extension Applier {
    /// A row without an ID by its table and its rowid.
    struct NamelessRow: Hashable {
        var entity: Int64
        var rowid: Int64
    }

    /// Has rows without an ID do without a target that has left.
    ///
    /// - Parameters:
    ///   - column: what becomes null, if it may.
    ///   - wait: what a row of these values waits for.
    func detachNameless(
        _ table: EntityTable, where condition: String, _ values: [Value], _ column: EntityColumn?, detail: String,
        wait: ([Int: Value]) -> [UInt8]
    ) throws {
        guard let namelessCondition = table.namelessCondition, let rowid = table.rowid else { return }
        let find = try context.statement(
            db,
            "SELECT \(rowid) FROM \(table.entity.name.quotedName) WHERE (\(condition)) AND (\(namelessCondition))")
        for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
        var rows: [Int64] = []
        while try find.step() { rows.append(find.integer(0)) }
        for row in rows {
            guard let values = try table.read(db, rowid: row) else { continue }
            if let column, !column.isNotNull, try table.clear(db, column, rowid: row) {
                let portable = try portableValues(table, .nameless, values)
                try journal.record(
                    .deleted, table, table.incompleteIdentity(values), slot: column.slot,
                    value: portable[column.slot] ?? .null, stamp: .zero, winner: .zero)
                try logNameless(table, column, values)
                context.freedEntities.insert(table.entity.id)
                continue
            }
            let (identity, shadow) = try evict(table, rowid: row, values)
            try shadows.save(table, identity, shadow, .missingTarget, detail: detail, wait: wait(values))
        }
    }

    /// A row without an ID gives way to another one of its unique key.
    func giveWay(_ table: EntityTable, rowid: Int64, to winner: StableID, _ clocks: RowClocks) throws {
        guard let values = try table.read(db, rowid: rowid) else { return }
        let (identity, shadow) = try evict(table, rowid: rowid, values)
        yieldCounts[RowName(entity: table.entity.id, identity: identity), default: 0] += 1
        try park(table, identity, shadow, behind: winner, winning: clocks.newest)
    }

    /// Takes a row without an ID out of its table.
    ///
    /// - Returns: a name for what waits, which is none to any other node.
    private func evict(_ table: EntityTable, rowid: Int64, _ values: [Int: Value]) throws -> (StableID, Shadow) {
        let portable = try portableValues(table, .nameless, values)
        try table.delete(db, rowid: rowid)
        let kept = table.entity.keepsOldValues ? table.entity.columns : table.entity.identityColumns
        let change = try table.log(
            db, ChangeKind.delete.code, row: nil, mask: .null, time: context.now(),
            kept.map { ($0.slot, values[$0.slot] ?? .null) })
        let place = NamelessRow(entity: table.entity.id, rowid: rowid)
        let identity = returned.removeValue(forKey: place) ?? StableID.nameless(change)
        orphans.append(Orphan(entity: table.entity, identity: identity, row: nil, values: values))
        if context.shadowCount > 0 { context.freedEntities.insert(table.entity.id) }
        return (identity, Shadow(clocks: RowClocks(inserted: .zero), values: portable))
    }

    /// A row without an ID is back in its table.
    func noteReturn(
        _ table: EntityTable, _ identity: StableID, rowid: Int64, _ values: [(slot: Int, value: Value)]
    ) {
        returned[NamelessRow(entity: table.entity.id, rowid: rowid)] = identity
        let row = Dictionary(values.map { ($0.slot, $0.value) }, uniquingKeysWith: { a, _ in a })
        for key in context.valueKeys.byTarget[table.entity.id] ?? [] {
            let values = key.targetValues(row, nil)
            if !values.contains(.null) { wakes.append(key.wait(for: values)) }
        }
    }

    private func logNameless(_ table: EntityTable, _ column: EntityColumn, _ values: [Int: Value]) throws {
        if table.entity.keepsOldValues {
            let slots = table.identityColumns.map(\.slot) + [column.slot].filter { !table.isIdentity($0) }
            try table.log(
                db, ChangeKind.Mark.before, row: nil, mask: .null, time: context.now(),
                slots.map { ($0, values[$0] ?? .null) })
        }
        let identity = table.identityColumns.filter { $0.slot != column.slot }
        let mask = ChangeMask.value(slots: [column.slot], highest: table.highestSlot)
        try table.log(
            db, ChangeKind.update.code, row: nil, mask: mask, time: context.now(),
            identity.map { ($0.slot, values[$0.slot] ?? .null) } + [(column.slot, .null)])
    }
}

extension StableID {
    /// Of a row without an ID, where it has to be called something. No identity begins with NULL.
    static let nameless = StableID(values: [.null])

    /// Of one that waits.
    static func nameless(_ number: Int64) -> StableID { StableID(values: [.null, .integer(number)]) }

    /// True for what no other node can know.
    var isNameless: Bool { bytes.first == 0 }
}

extension EntityTable {
    /// True of a row without an ID. Nil where every row has one.
    var namelessCondition: String? {
        guard entity.integerKey == nil, !entity.isWithoutRowID else { return nil }
        let columns = identityColumns.filter { !$0.isNotNull }
        return columns.isEmpty ? nil : columns.map { "\($0.name.quotedName) IS NULL" }.joined(separator: " OR ")
    }

    /// The rowid under a name that no column has. Nil where every row has an ID.
    var rowid: String? {
        guard namelessCondition != nil else { return nil }
        return ["rowid", "_rowid_", "oid"].first { name in
            !entity.columns.contains { $0.name.lowercased() == name }
        }
    }

    /// The rowid of a row without an ID.
    ///
    /// - Parameter found: what ``findRival(_:row:_:)`` gave.
    /// - Returns: nil where the row has an ID.
    func nameless(_ found: [Value]) -> Int64? {
        guard rowid != nil, found.dropLast().contains(.null), case .integer(let row)? = found.last else { return nil }
        return row
    }

    /// The identity of a row as far as it has one: not for anything but to be read by people.
    func incompleteIdentity(_ values: [Int: Value]) -> StableID {
        StableID(values: identityColumns.map { values[$0.slot] ?? .null })
    }

    func read(_ db: Database, rowid row: Int64) throws -> [Int: Value]? {
        guard let rowid else { return nil }
        let names = entity.columns.map(\.name.quotedName).joined(separator: ", ")
        let read = try PreparedStatement(
            db, "SELECT \(names) FROM \(entity.name.quotedName) WHERE \(rowid) = ?1")
        read.bind(1, row)
        return try read.first { found in
            Dictionary(uniqueKeysWithValues: slots.enumerated().map { ($1, found.value(Int32($0))) })
        }
    }

    func delete(_ db: Database, rowid row: Int64) throws {
        guard let rowid else { return }
        let delete = try PreparedStatement(db, "DELETE FROM \(entity.name.quotedName) WHERE \(rowid) = ?1")
        delete.bind(1, row)
        try delete.run()
    }

    /// Sets a column to NULL.
    ///
    /// - Returns: false where the table refuses that.
    func clear(_ db: Database, _ column: EntityColumn, rowid row: Int64) throws -> Bool {
        guard let rowid else { return false }
        let update = try PreparedStatement(
            db,
            "UPDATE OR ABORT \(entity.name.quotedName) SET \(column.name.quotedName) = NULL WHERE \(rowid) = ?1")
        update.bind(1, row)
        do {
            try update.run()
            return true
        } catch let error as StoreError where error.refusesRow {
            return false
        }
    }
}
