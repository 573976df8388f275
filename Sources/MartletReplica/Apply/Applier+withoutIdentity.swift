import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore

/// Rows without an ID, because a column of their identity is NULL. Other nodes don't have these rows, so decisions that
/// all nodes must make alike ignore them: every row with an ID that claims their unique key displaces them, and they
/// become pending on this node. If the target of such a row leaves, its reference becomes NULL, and goes into the
/// journal.
extension Applier {
    /// A row without an ID, by its table and rowid.
    package struct RowWithoutIdentity: Hashable {
        package var entity: Int64
        package var rowid: Int64
    }

    /// Detaches rows without an ID from a target that has left.
    ///
    /// - Parameters:
    ///   - column: the column that becomes null, if it may.
    ///   - wait: returns the key that a row with these values waits for.
    package func detachWithoutIdentity(
        _ table: EntityTable, where condition: String, _ values: [Value], _ column: EntityColumn?, detail: String,
        wait: ([Int: Value]) -> [UInt8]
    ) throws {
        guard let noIdentityCondition = table.noIdentityCondition, let rowid = table.rowid else { return }
        let find = try context.statement(
            db,
            "SELECT \(rowid) FROM \(table.entity.name.quotedName) WHERE (\(condition)) AND (\(noIdentityCondition))")
        for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
        var rows: [Int64] = []
        while try find.step() { rows.append(find.integer(0)) }
        for row in rows {
            guard let values = try table.read(db, rowid: row) else { continue }
            if let column, !column.isNotNull, try table.clear(db, column, rowid: row) {
                let portable = try portableValues(table, .withoutIdentity, values)
                try journal.record(
                    .deleted, table, table.incompleteIdentity(values), slot: column.slot,
                    value: portable[column.slot] ?? .null, stamp: .zero, winner: .zero)
                try logWithoutIdentity(table, column, values)
                context.news.note(freed: table.entity.id)
                continue
            }
            let (identity, pendingRow) = try evict(table, rowid: row, values)
            try pendingRows.save(table, identity, pendingRow, .missingTarget, detail: detail, wait: wait(values))
        }
    }

    /// Evicts a row without an ID in favour of another row with its unique key.
    package func giveWay(_ table: EntityTable, rowid: Int64, to winner: StableID, _ clocks: RowClocks) throws {
        guard let values = try table.read(db, rowid: rowid) else { return }
        let (identity, pendingRow) = try evict(table, rowid: rowid, values)
        yieldCounts[RowIdentity(entity: table.entity.id, identity: identity), default: 0] += 1
        try park(table, identity, pendingRow, behind: winner, winning: clocks.newest)
    }

    /// Takes a row without an ID out of its table.
    ///
    /// - Returns: an ID for the pending row. It means nothing to other nodes.
    private func evict(_ table: EntityTable, rowid: Int64, _ values: [Int: Value]) throws -> (StableID, PendingRow) {
        let portable = try portableValues(table, .withoutIdentity, values)
        try table.delete(db, rowid: rowid)
        let kept = table.entity.keepsOldValues ? table.entity.columns : table.entity.identityColumns
        let change = try table.log(
            db, ChangeKind.delete.code, row: nil, mask: .null, time: context.now(),
            kept.map { ($0.slot, values[$0.slot] ?? .null) })
        let place = RowWithoutIdentity(entity: table.entity.id, rowid: rowid)
        let identity = returned.removeValue(forKey: place) ?? StableID.withoutIdentity(change)
        orphans.append(
            Orphan(
                table: table, identity: identity, row: nil,
                values: context.valueKeys.referred(values, of: table.entity)))
        if context.pendingRows.count > 0 { context.news.note(freed: table.entity.id) }
        return (identity, PendingRow(clocks: RowClocks(inserted: .zero), values: portable))
    }

    /// Records that a row without an ID is back in its table.
    package func noteReturn(
        _ table: EntityTable, _ identity: StableID, rowid: Int64, _ values: [(slot: Int, value: Value)]
    ) {
        returned[RowWithoutIdentity(entity: table.entity.id, rowid: rowid)] = identity
        let row = Dictionary(values.map { ($0.slot, $0.value) }, uniquingKeysWith: { a, _ in a })
        for key in context.valueKeys.byTarget[table.entity.id] ?? [] {
            let values = key.targetValues(row, nil)
            if !values.contains(.null) { wakes.append(key.wait(for: values)) }
        }
    }

    private func logWithoutIdentity(_ table: EntityTable, _ column: EntityColumn, _ values: [Int: Value]) throws {
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
