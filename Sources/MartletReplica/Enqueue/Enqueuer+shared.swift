import GRDB
package import MartletCore
import MartletMerge
package import MartletStore
package import MartletWire

/// Two rows of a table with an integer key that have the same stable ID: with foreign keys switched off, one may refer
/// to the key that their target has left, and the other to the key that it has now. On other nodes they are one row.
/// Once all local changes have their clocks, the applier takes the first one out of its table.
extension Enqueuer {
    /// Returns the key of another row that has this ID, too, and refers to the key that their target has now.
    package func rowSharing(_ identity: StableID, of table: EntityTable, besides row: Int64?) throws -> Int64? {
        guard let row, !table.recordsNames, table.identityColumns.contains(where: { $0.reference != nil }),
            let other = try table.find(db, identity)?.address.row, other != row,
            try table.keptIdentity(db, row: other) == identity
        else { return nil }
        return other
    }

    /// Enqueues an insert of the other row that has the ID of a deleted row, too: on other nodes, the delete concerns
    /// both.
    ///
    /// - Returns: false if there is no such row.
    @discardableResult
    package func stampRemaining(
        _ identity: StableID, _ delete: LogChange, _ wire: inout OutgoingChanges
    ) throws -> Bool {
        let entity = delete.entity
        let table = context.table(entity)
        guard let row = try rowSharing(identity, of: table, besides: delete.row) else { return false }
        let isUnpublished =
            try isIgnored(entity) || table.clocks(db, row: row, identity)?.isUnpublished ?? false
        let stamp = tick(delete, isUnpublished: isUnpublished)
        var clocks = RowClocks(deleted: try context.tombstones.find(db, entity.id, identity))
        _ = clocks.insert(table.slots, of: table.slots, at: stamp)
        try table.saveClocks(db, row: row, identity, clocks)
        context.noteArrival(entity, identity)
        // If the row is gone by now, its delete is later in the log.
        guard !isUnpublished,
            let address = try currentAddress(entity, identity, row: row, after: delete.id),
            let current = try table.read(db, address)
        else { return true }
        let named = try table.identityValues(identity)
        let pending = Dictionary(
            try context.pendingReferences.find(db, entity, identity), uniquingKeysWith: { $1 })
        var insert = delete
        insert.row = row
        insert.values = entity.columns.map { column in
            (column, named[column.slot] ?? pending[column.slot] ?? current[column.slot] ?? .null)
        }
        try add(.insert, insert, identity, stamp, to: &wire)
        return true
    }

    /// Returns the rows so that of those with the same ID, the one comes last that refers to this key, which their
    /// target has now. What is pending under the ID is that row's.
    package func currentLast(
        _ rows: [(row: Int64?, identity: StableID)], _ table: EntityTable, _ target: Entity, _ key: Int64?,
        _ change: LogChange
    ) throws -> [(row: Int64?, identity: StableID)] {
        guard let key, Set(rows.map(\.identity)).count < rows.count else { return rows }
        let columns = table.identityColumns.filter { $0.reference == target.name }
        func isCurrent(_ row: Int64?, _ identity: StableID) throws -> Bool {
            let address = try currentAddress(table.entity, identity, row: row, after: change.id)
            guard let current = try address.flatMap({ try table.read(db, $0) }) else { return false }
            return columns.contains { current[$0.slot].flatMap($0.referredRow) == key }
        }
        let current = try rows.filter { try isCurrent($0.row, $0.identity) }
        return rows.filter { row in !current.contains { $0 == row } } + current
    }
}
