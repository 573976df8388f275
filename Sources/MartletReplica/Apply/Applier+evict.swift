import GRDB
package import MartletCore
import MartletMerge
import MartletStore
import MartletWire

/// Rows that leave their tables, because they were deleted or have to wait.
extension Applier {
    /// Takes a row out of its table, and merges a change that keeps it from staying there.
    package func evict(
        _ table: EntityTable, _ found: EntityTable.Found, _ identity: StableID, merging change: RemoteChange
    ) throws -> PendingRow {
        var pendingRow = try evict(table, found, identity)
        _ = change.merge(into: &pendingRow)
        return pendingRow
    }

    /// Takes a row out of its table, because it was deleted or has to wait.
    ///
    /// - Returns: everything known of it, its pending changes included.
    package func evict(_ table: EntityTable, _ found: EntityTable.Found, _ identity: StableID) throws -> PendingRow {
        let values = try table.read(db, found.address) ?? [:]
        var pendingRow = PendingRow(
            clocks: found.clocks, values: try portableValues(table, identity, values), localID: found.address.row)
        if let pending = try pendingRows.load(table, identity) {
            pendingRow.id = pending.id
            for (slot, value) in pending.values {
                guard let stamp = pending.clocks.stamp(of: slot),
                    !pendingRow.clocks.update([slot], at: stamp).won.isEmpty
                else { continue }
                pendingRow.values[slot] = value
            }
        }
        try takeOut(table, found.address, identity, values)
        try table.removeClocks(db, row: found.address.row, identity)
        try forgetPending(table.entity, identity)
        return pendingRow
    }

    /// Deletes a row from its table, and logs that. Its clocks and what is pending under its ID stay.
    package func takeOut(
        _ table: EntityTable, _ address: RowAddress, _ identity: StableID, _ values: [Int: Value]
    ) throws {
        try table.delete(db, address)
        let logged = table.entity.keepsOldValues ? table.entity.columns : table.entity.identityColumns
        let change = try table.log(
            db, ChangeKind.delete.code, row: address.row, mask: .null, time: context.now(),
            logged.map { ($0.slot, values[$0.slot] ?? .null) })
        if let row = address.row {
            try context.numbers.retire(db, table.entity, row: row, until: change, identity)
        }
        orphans.append(
            Orphan(
                table: table, identity: identity, row: address.row,
                values: context.valueKeys.referred(values, of: table.entity)))
        if context.pendingRows.count > 0 { context.news.note(freed: table.entity.id) }
    }

    /// Returns the values in portable form.
    ///
    /// - Parameter withPending: whether to include pending references.
    package func portableValues(
        _ table: EntityTable, _ identity: StableID, _ values: [Int: Value], withPending: Bool = true
    ) throws -> [Int: Value] {
        var portable = values
        for column in table.entity.columns {
            guard let name = column.reference, let target = context.catalog[name],
                let row = values[column.slot].flatMap(column.referredRow),
                let identity = try context.resolver.identity(db, target, row: row)
            else { continue }
            portable[column.slot] = .reference(Reference(entity: name, identity: identity))
        }
        guard withPending else { return portable }
        for (slot, value) in try pending(table.entity, identity) { portable[slot] = value }
        return portable
    }
}
