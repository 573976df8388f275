import GRDB
package import MartletCore
package import MartletStore
package import MartletWire

/// Tables whose rows keep the stable ID that they were inserted with: tables with IDs that Martlet assigns, and tables
/// in which a former rule, or another node's, identifies some rows (docs/decisions/0011).
extension Enqueuer {
    /// Returns the ID that the columns of the row form. Nil if it would contain the row's present ID: a row that refers
    /// to itself in the end would get another ID with each change.
    package func besidesOwn(_ declared: StableID?, _ change: LogChange) throws -> StableID? {
        guard let declared, let row = change.row,
            change.entity.identityColumns.contains(where: { $0.reference != nil }),
            let kept = try context.table(change.entity).keptIdentity(db, row: row)
        else { return declared }
        return declared.contains(Reference(entity: change.entity.name, identity: kept)) ? nil : declared
    }

    /// Begins to look up stable IDs, if the columns of a row make up none.
    package func recordName(_ declared: StableID?, _ change: LogChange) throws {
        let table = context.table(change.entity)
        if declared == nil, table.mayBeNamedOtherwise, change.row != nil { try table.beginRecording(db) }
    }

    /// Returns the stable ID for a new row: the declared one, unless there is none, or another row keeps it although
    /// its columns have changed.
    package func freeName(_ entity: Entity, _ declared: StableID?, at change: Int64) throws -> StableID {
        if let declared, try !context.table(entity).hasName(db, declared) { return declared }
        return try assignedName(change)
    }

    /// Returns the ID that Martlet assigns to the row that this change inserts.
    package func assignedName(_ change: Int64) throws -> StableID {
        context.hiddenIDs.inserted(change: change, time: try time(of: change))
    }

    /// Returns when a change was made, in milliseconds since 1970.
    package func time(of change: Int64) throws -> Int64 {
        let find = try context.statement(db, "SELECT t FROM \(InternalName.log) WHERE id = ?1")
        find.bind(1, change)
        return try find.first { $0.integer(0) } ?? 0
    }

    /// Enqueues an update in such a table. A row that is identified by its columns follows them, as in tables where all
    /// rows are. A row that keeps an ID keeps it.
    package func stampKeptUpdate(_ change: LogChange, _ wire: inout OutgoingChanges) throws {
        let entity = change.entity
        let table = context.table(entity)
        guard let row = change.row else { return }
        let declared =
            entity.identity == .hidden ? nil : try declaredIdentity(entity, change.values, at: change.id, setBy: change)
        guard let kept = try table.keptIdentity(db, row: row) else {
            if let moving = try movingIdentity(change, to: row) { return early.add(changed(change), moving) }
            guard let declared, change.givesName else { return }
            return try stampInsert(change, freeName(entity, declared, at: change.id), &wire)
        }
        let moved = try takeEarly(of: kept, change)
        if let declared, declared != kept {
            if let before = change.before, try declaredIdentity(entity, before.values, at: change.id) == kept,
                try besidesOwn(declared, change) != nil
            {
                let name = try freeName(entity, declared, at: change.id)
                var rename = change
                rename.values = change.values.map { ($0, moved[$0.slot] ?? $1) }
                return try stampRename(rename, from: kept, to: name, declared: declared, &wire)
            }
            if try isAheadOfRenaming(change, kept) { return early.add(changed(change), declared) }
        }
        var update = changed(change)
        update.values += entity.columns.compactMap { column in moved[column.slot].map { (column, $0) } }
        guard !update.values.isEmpty else { return }
        let clocks = try table.clocks(db, row: row, kept)
        try stampColumns(update, kept, clocks, &wire)
        if let declared, update.values.contains(where: { table.isIdentity($0.column.slot) }) {
            context.noteArrival(entity, declared)
        }
    }

    /// Enqueues the loss of an identity: a row without an integer key has left its ID and has no other, because of a
    /// NULL. On other nodes it is gone until it has an identity again.
    package func stampLoss(of name: StableID, _ change: LogChange, _ wire: inout OutgoingChanges) throws {
        try stampDelete(of: name, change, &wire)
        try forgetPending(change.entity, name, nil)
        noteFreed(change.entity)
        noteLeftName(change)
    }

    private func changed(_ change: LogChange) -> LogChange {
        var update = change
        update.values = change.values.filter { change.isChanged($0.column) }
        return update
    }

    /// Returns the ID of the row that takes this key, which no row has yet: its move triggered the change, and is later
    /// in the log.
    private func movingIdentity(_ change: LogChange, to row: Int64) throws -> StableID? {
        guard change.entity.isKeyedByInteger,
            let key = try keys.arrivingKey(db, at: row, in: change.entity, after: change.id)
        else { return nil }
        return try context.table(change.entity).keptIdentity(db, row: key)
    }

    /// Takes the values that the row's move to another key triggered, by slot, except those that the move includes.
    private func takeEarly(of name: StableID, _ change: LogChange) throws -> [Int: Value] {
        guard let from = change.before?.row, from != change.row else { return [:] }
        var values = try early.take(db, change.entity, name)
        for column in change.entity.columns where change.isChanged(column) { values[column.slot] = nil }
        return values
    }

    /// Returns true if the change cascaded through a foreign key from the row to itself: in the log, it precedes the
    /// change of identity that caused it.
    private func isAheadOfRenaming(_ change: LogChange, _ kept: StableID) throws -> Bool {
        let entity = change.entity
        guard let row = change.row,
            entity.foreignKeys.contains(where: { $0.target.lowercased() == entity.name.lowercased() })
        else { return false }
        let columns = entity.identityColumns
        let find = try PreparedStatement(
            db,
            """
            SELECT \(columns.map { "c\($0.slot)" }.joined(separator: ", ")) FROM \(InternalName.log)
            WHERE id > ?1 AND e = ?2 AND r = ?3 AND k = \(ChangeKind.Mark.before)
            AND id < (SELECT min(id) FROM \(InternalName.log) WHERE id > ?1 AND e = 0) ORDER BY id LIMIT 1
            """)
        find.bind(1, change.id)
        find.bind(2, entity.id)
        find.bind(3, row)
        guard let values = try find.first({ found in columns.indices.map { found.value(Int32($0)) } }) else {
            return false
        }
        return try declaredIdentity(entity, Array(zip(columns, values)), at: change.id) == kept
    }

    /// Records the arrival of a row under its ID and under its declared ID.
    package func noteArrival(_ change: LogChange, _ identity: StableID) throws {
        context.noteArrival(change.entity, identity)
        let table = context.table(change.entity)
        guard context.pendingRows.count > 0 || !context.pendingReferences.isEmpty, table.recordsNames,
            table.isReferenced,
            change.entity.identity != .hidden,
            let declared = try declaredIdentity(change.entity, change.values, at: change.id), declared != identity
        else { return }
        context.noteArrival(change.entity, declared)
    }

    /// Returns true if the row has this ID because its columns refer to that target.
    package func isNamed(_ identity: StableID, in entity: Entity, after target: Reference) throws -> Bool {
        let parts = try identity.values()
        let columns = entity.identityColumns
        guard parts.count == columns.count else { return false }
        return zip(columns, parts).contains { $0.reference == target.entity && $1 == .reference(target) }
    }
}
