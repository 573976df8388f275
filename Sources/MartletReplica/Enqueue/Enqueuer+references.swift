import GRDB
package import MartletCore
import MartletMerge
package import MartletStore

extension Enqueuer {
    /// Returns the value in portable form: an integer foreign key becomes a reference.
    ///
    /// - Parameter isSet: true for a value that an update set, which may have been cascaded.
    package func portable(_ value: Value, _ column: EntityColumn, at change: Int64, isSet: Bool = false) throws -> Value
    {
        guard let name = column.reference, var row = column.referredRow(value), let target = context.catalog[name]
        else {
            return value
        }
        if isSet, let moving = try keys.displacingKey(db, of: row, in: target, after: change) { row = moving }
        guard let identity = try self.identity(target, row: row, at: change) else { return value }
        return .reference(Reference(entity: name, identity: identity))
    }

    /// Returns the ID that a row gets in the statement that cascaded the change, if it contains rows that take over
    /// integer keys in that statement.
    package func displacingName(_ entity: Entity, _ declared: StableID, _ change: LogChange) throws -> StableID? {
        let columns = entity.identityColumns
        guard columns.contains(where: { $0.reference != nil }) else { return nil }
        let values = try zip(columns, declared.values()).map { column, value in
            let local = change.values.first { $0.column.slot == column.slot }?.value
            return try displacingTarget(column, local, at: change.id).first ?? value
        }
        return StableID(values: values)
    }

    /// Returns a reference to the row that takes over the integer key in the statement that cascaded the change. Empty
    /// if there is none.
    package func displacingTarget(_ column: EntityColumn, _ local: Value?, at change: Int64) throws -> [Value] {
        guard let name = column.reference, let key = local.flatMap(column.referredRow),
            let target = context.catalog[name],
            let row = try keys.displacingKey(db, of: key, in: target, after: change),
            let identity = try identity(target, row: row, at: change)
        else { return [] }
        return [.reference(Reference(entity: name, identity: identity))]
    }

    /// Returns the row's stable ID at this point of the log.
    private func identity(_ target: Entity, row: Int64, at change: Int64) throws -> StableID? {
        let table = context.table(target)
        if let kept = try table.keptIdentity(db, row: row) { return kept }
        // The log's next entry for the key: the row that has it is removed or changed, or a row comes, since a child
        // may be written before its parent.
        if let next = try nextIdentity(target, row: row, after: change) { return next }
        if let known = try context.resolver.identity(db, target, row: row) {
            // The row is gone since an earlier change. Here, too, the reference must wait for it, or another row could
            // get its number.
            if try !table.hasRow(db, row) { context.noteLeft(target, RemovedTarget(identity: known, row: row)) }
            return known
        }
        guard target.localKey != nil else { return nil }
        // Stored, so that the row gets this ID when it comes, and no other row gets the number. If columns identify the
        // row, this ID stands for one that nobody knows yet: other nodes have other rows under the number.
        let reserved = context.hiddenIDs.reserved(
            target.name, row: row, change: change, time: try time(of: change))
        let count = target.identity == .hidden ? 1 : target.identityColumns.count
        let identity = StableID(values: try Array(repeating: reserved.values(), count: count).flatMap(\.self))
        try table.saveClocks(db, row: row, identity, RowClocks(inserted: .zero))
        try context.numbers.reserve(db, target, row: row)
        return identity
    }

    /// Returns the ID by which rows referred to this row's integer key before it came, if its columns give it another
    /// ID.
    package func awaitedName(_ change: LogChange, _ identity: StableID) throws -> StableID? {
        let table = context.table(change.entity)
        guard change.entity.identity != .hidden, table.isReferenced, let row = change.row,
            let kept = try table.keptIdentity(db, row: row), kept != identity,
            try context.numbers.isReserved(db, change.entity, row: row)
        else { return nil }
        return kept
    }

    /// Returns the stable ID of the row that later in the log leaves this integer key, is changed under it, or gets it,
    /// by an insert or by a change of key, which logs its cascades first.
    private func nextIdentity(_ target: Entity, row: Int64, after change: Int64) throws -> StableID? {
        guard let id = try keys.nextImage(db, of: row, in: target, after: change) else { return nil }
        let find = try context.statement(db, "SELECT k FROM \(InternalName.log) WHERE id = ?1")
        find.bind(1, id)
        let kind = try find.first { $0.integer(0) } ?? 0
        if kind == ChangeKind.update.code {
            let before = try context.statement(
                db, "SELECT r FROM \(InternalName.log) WHERE id = ?1 AND e = ?2 AND k = \(ChangeKind.Mark.before)")
            before.bind(1, id - 1)
            before.bind(2, target.id)
            if let old = try before.first({ $0.integer(0) }), old != row {
                return try identity(target, row: old, at: change)
            }
        }
        let identityColumns = target.asOf(id).identityColumns
        guard !identityColumns.isEmpty else {
            return try kind == ChangeKind.insert.code ? assignedName(id) : nil
        }
        let read = try PreparedStatement(
            db,
            """
            SELECT \(identityColumns.map { "c\($0.slot)" }.joined(separator: ", ")) FROM \(InternalName.log)
            WHERE id = ?1
            """)
        read.bind(1, id)
        let values = try read.first { found in identityColumns.indices.map { found.value(Int32($0)) } } ?? []
        let declared = try declaredIdentity(target.asOf(id), Array(zip(identityColumns, values)), at: id)
        guard context.table(target).recordsNames, kind == ChangeKind.insert.code else { return declared }
        // Stored, so that the row gets this ID when it comes, whichever IDs other rows have by then.
        let name = try freeName(target, declared, at: id)
        try context.table(target).saveClocks(db, row: row, name, RowClocks(inserted: .zero))
        return name
    }
}
