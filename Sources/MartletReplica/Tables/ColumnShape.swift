package import GRDB
package import MartletCore
package import MartletStore
package import MartletWire

/// A list of columns that changes set, and what follows from it, computed once: nearly all changes of a table set the
/// same few lists of columns.
///
/// Confined to the engine's connection.
package final class ColumnShape {
    package let names: [String]
    package let slots: [Int]
    /// True if the list has every captured column of the table.
    package let isWhole: Bool
    /// True if no column can refer to a row that may be missing.
    package let isFreeOfReferences: Bool
    /// True if no column belongs to a foreign key by value, whose target may be missing.
    package let isFreeOfValueKeys: Bool
    /// True if no column is part of the identity or of any unique key.
    package let isFreeOfKeys: Bool
    /// True if no column is part of the identity.
    package let isFreeOfIdentity: Bool
    /// True if a column is local on every node.
    package let hasLocalColumns: Bool
    /// The tables to which the columns refer.
    package let references: [String?]
    private let columns: [EntityColumn]
    private let affinities: [Affinity]
    /// Which of the columns are part of the identity.
    private let areIdentity: [Bool]
    private unowned let table: EntityTable
    private var insertStatement: PreparedStatement?
    private var updateStatement: PreparedStatement?
    private var logInsertStatement: PreparedStatement?
    private var logUpdateStatement: PreparedStatement?

    package init(_ columns: [EntityColumn], names: [String], table: EntityTable, context: TableContext) {
        self.names = names
        self.table = table
        slots = columns.map(\.slot)
        self.columns = columns
        hasLocalColumns = columns.contains(where: \.isLocal)
        references = columns.map(\.reference)
        affinities = columns.map(\.affinity)
        isWhole = Set(slots) == Set(table.slots) && slots.count == table.slots.count
        isFreeOfValueKeys = columns.allSatisfy { column in
            !(context.valueKeys.byEntity[table.entity.id] ?? []).contains { $0.slots.contains(column.slot) }
        }
        isFreeOfReferences = isFreeOfValueKeys && columns.allSatisfy { $0.reference == nil }
        let identity = Set(table.identityColumns.map(\.slot))
        areIdentity = slots.map { identity.contains($0) }
        isFreeOfIdentity = slots.allSatisfy { !identity.contains($0) }
        let referenced = (context.valueKeys.byTarget[table.entity.id] ?? []).flatMap(\.targetSlots)
        isFreeOfKeys =
            Set(slots).count == slots.count
            && slots.allSatisfy { slot in
                !identity.contains(slot) && !table.uniqueSlots.contains(slot) && !referenced.contains(slot)
            }
    }

    /// Returns true if the columns store all of the values as they came. The author's columns may have other types, or
    /// refer to rows.
    package func keeps(_ values: [RemoteColumn]) -> Bool {
        for index in values.indices where !keeps(values[index].value, at: index) { return false }
        return true
    }

    package func keeps(_ values: [Value]) -> Bool {
        for index in values.indices where !keeps(values[index], at: index) { return false }
        return true
    }

    private func keeps(_ value: Value, at index: Int) -> Bool {
        if case .reference = value { return false }
        // A column is a large value, and copying it takes longer than the rest of this.
        return affinities[index].isOwnType(of: value) || columns[index].takes(value, asName: areIdentity[index])
    }

    /// The statement that inserts a row: `?1` is the integer key if the table has a local one; the values follow.
    package func insert(_ db: Database) throws -> PreparedStatement {
        try kept(&insertStatement, db, table.insertSQL(slots))
    }

    /// The statement that updates a row: the values, then what finds the row.
    package func update(_ db: Database) throws -> PreparedStatement {
        try kept(&updateStatement, db, table.updateSQL(slots))
    }

    /// The statement that logs an insert: row, time, values.
    package func logInsert(_ db: Database) throws -> PreparedStatement {
        try kept(
            &logInsertStatement, db, table.logSQL(kind: ChangeKind.insert.code, mask: nil, slots: slots))
    }

    /// The statement that logs an update: row, time, values, identity.
    package func logUpdate(_ db: Database) throws -> PreparedStatement {
        try kept(
            &logUpdateStatement, db,
            table.logSQL(
                kind: ChangeKind.update.code, mask: ChangeMask.value(slots: slots, highest: table.highestSlot),
                slots: slots + table.identityColumns.map(\.slot)))
    }
}
