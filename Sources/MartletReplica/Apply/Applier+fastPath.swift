import GRDB
package import MartletCore
import MartletMerge
import MartletStore
import MartletWire

/// The fast path for changes that meet nothing special, which is nearly all of them. It decides nothing: if anything
/// would have to be decided (a conflict, a tombstone, a reference, a unique key, a pending change), it writes nothing
/// and leaves the change to the slow path.
extension Applier {
    /// - Returns: true if the change was applied.
    package func applyPlainly(_ change: RemoteChange) throws -> Bool {
        guard context.pendingRows.count == 0, context.pendingReferences.isEmpty, orphans.isEmpty, change.table.isPlain,
            context.filters[change.entity]?.subscribe == nil, let shape = change.shape,
            context.encoding == .utf8 || change.columns.allSatisfy({ context.encoding.holds($0.value) })
        else { return false }
        // From a snapshot, only rows that were inserted and never changed.
        if let state = change.state {
            guard change.kind == .insert, state.clocks == RowClocks(inserted: change.stamp) else { return false }
        }
        switch change.kind {
        case .insert: return try insertOnFastPath(change, shape)
        case .update: return try updateOnFastPath(change, shape)
        case .delete: return try deleteOnFastPath(change)
        }
    }

    private func insertOnFastPath(_ change: RemoteChange, _ shape: ColumnShape) throws -> Bool {
        let table = change.table
        guard shape.isWhole, shape.isFreeOfReferences, shape.keeps(change.columns),
            table.hasLocalKey == (change.localID != nil)
        else { return false }
        return try insertOnFastPath(change.identity, row: change.localID, into: table, shape, at: change.stamp) {
            statement, first in
            for index in change.columns.indices {
                statement.bind(first + Int32(index), change.columns[index].value)
            }
        }
    }

    /// Inserts a row of a snapshot.
    ///
    /// - Parameters:
    ///   - shape: all columns of the table.
    ///   - values: the values of these columns, which store them as they are. References are integer keys of this file.
    /// - Returns: true if the row was inserted.
    package func insertOnFastPath(
        _ identity: StableID, row: Int64?, into table: EntityTable, _ shape: ColumnShape, _ values: [Value],
        at stamp: Stamp
    ) throws -> Bool {
        guard orphans.isEmpty else { return false }
        // A snapshot may have rows that wait, and the rows after them are not to be slow because of these.
        let areSomePending = context.pendingRows.count > 0 || !context.pendingReferences.isEmpty
        if areSomePending {
            guard try pendingRows.load(table, identity) == nil, try pending(table.entity, identity).isEmpty else {
                return false
            }
        }
        let isDone = try insertOnFastPath(identity, row: row, into: table, shape, at: stamp) { statement, first in
            for index in values.indices { statement.bind(first + Int32(index), values[index]) }
        }
        if isDone, areSomePending { context.noteArrival(table.entity, identity) }
        return isDone
    }

    /// - Parameter bindValues: binds the values of the shape's columns, from this parameter on.
    private func insertOnFastPath(
        _ identity: StableID, row: Int64?, into table: EntityTable, _ shape: ColumnShape, at stamp: Stamp,
        _ bindValues: (PreparedStatement, _ first: Int32) -> Void
    ) throws -> Bool {
        guard try context.tombstones.find(db, table.entity.id, identity) == nil,
            try row.map({ try !context.numbers.isSpent(db, table.entity, row: $0, for: identity) }) ?? true
        else { return false }
        // Without an integer key, a row that isn't in the table has no clocks either.
        guard
            try !table.side.isKeyedByInteger
                || table.side.insert(
                    db, row: row, identity, stamp, node: context.nodes.number(db, stamp.node))
        else { return false }
        let insert = try shape.insert(db)
        if let row { insert.bind(1, row) }
        bindValues(insert, 2)
        guard try insert.runUnlessConstrained() else {
            if table.side.isKeyedByInteger { try table.side.remove(db, row: row, identity) }
            return false
        }
        if !table.side.isKeyedByInteger {
            try context.recent.set(db, table.entity.id, identity, RowClocks(inserted: stamp))
        }
        let time = stamp.time.milliseconds
        let log = try shape.logInsert(db)
        log.bind(1, optional: row)
        log.bind(2, time)
        bindValues(log, 3)
        try log.run()
        context.applied.note(log.lastInsertedRowID, time: time)
        return true
    }

    private func updateOnFastPath(_ change: RemoteChange, _ shape: ColumnShape) throws -> Bool {
        let table = change.table
        guard shape.isFreeOfReferences, shape.isFreeOfKeys, !shape.slots.isEmpty, shape.keeps(change.columns),
            !table.entity.keepsOldValues,
            var found = try table.side.find(db, change.identity)
        else { return false }
        for column in change.columns {
            guard let local = found.clocks.stamp(of: column.slot) else { return false }
            // A newer local value, or one that the author of the change had not seen.
            if local >= change.stamp || (local.time > column.replaces && local.node != change.stamp.node) {
                return false
            }
        }
        guard found.clocks.update(shape.slots, at: change.stamp).won.count == shape.slots.count else { return false }
        let update = try shape.update(db)
        for index in change.columns.indices { update.bind(Int32(index + 1), change.columns[index].value) }
        table.bind(update, row: found.row, change.identityValues, from: change.columns.count + 1)
        guard try update.runUnlessConstrained(), update.changes == 1 else { return false }
        try table.side.update(db, row: found.row, change.identity, found.clocks)
        let log = try shape.logUpdate(db)
        log.bind(1, optional: found.row)
        log.bind(2, change.stamp.time.milliseconds)
        for index in change.columns.indices { log.bind(Int32(index + 3), change.columns[index].value) }
        if table.identityColumns.count > 0 {
            for (index, value) in change.identityValues.enumerated() {
                log.bind(Int32(change.columns.count + index + 3), value)
            }
        }
        try log.run()
        context.applied.note(log.lastInsertedRowID, time: change.stamp.time.milliseconds)
        return true
    }

    private func deleteOnFastPath(_ change: RemoteChange) throws -> Bool {
        let table = change.table
        guard !table.isReferenced, !table.entity.keepsOldValues, var found = try table.side.find(db, change.identity)
        else { return false }
        guard change.hasSeenAll(of: found.clocks) else { return false }
        // A column that was set after the delete is kept for a later insert.
        guard !found.clocks.delete(at: change.stamp).isAlive, found.clocks.exceptions.isEmpty else { return false }
        let delete = try table.deletion(db)
        table.bind(delete, row: found.row, change.identityValues, from: 1)
        guard try delete.runUnlessConstrained(), delete.changes == 1 else { return false }
        try table.side.remove(db, row: found.row, change.identity)
        try context.tombstones.set(db, table.entity.id, change.identity, change.stamp)
        try context.tombstones.makeLasting(db, table.entity.id, change.identity, of: found.clocks)
        let time = context.now()
        let log = try table.logDelete(db)
        log.bind(1, optional: found.row)
        log.bind(2, time)
        if table.identityColumns.count > 0 {
            for (index, value) in change.identityValues.enumerated() { log.bind(Int32(index + 3), value) }
        }
        try log.run()
        let id = log.lastInsertedRowID
        context.applied.note(id, time: time)
        if let row = found.row { try context.numbers.retire(db, table.entity, row: row, until: id, change.identity) }
        return true
    }
}
