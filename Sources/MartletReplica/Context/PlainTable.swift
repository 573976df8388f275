import MartletCore
package import MartletStore
import MartletWire

/// A table whose local changes concern no other row: nearly all of them can be enqueued without being decoded.
///
/// Confined to the engine's connection. Recreated with its context.
package final class PlainTable {
    let table: EntityTable
    let names: EncodedNames
    /// The slots of the identity columns, in the order of the identity.
    let identity: [Int]
    /// The slot of each column of `names`, and whether it is part of the identity.
    let columns: [(slot: Int, isIdentity: Bool)]

    /// Nil if changes of the table may concern others.
    init?(_ table: EntityTable, _ filters: RowFilters) {
        let entity = table.entity
        guard table.isPlain, entity.integerKey == nil, !table.identityColumns.isEmpty, !table.isReferenced,
            !entity.keepsOldValues, filters[entity] == nil,
            entity.columns.allSatisfy({ $0.reference == nil && !$0.isLocal && !$0.isDropped })
        else { return nil }
        self.table = table
        names = EncodedNames(
            of: entity.name, formerNames: entity.formerNames, columns: entity.columns.map(entity.names))
        identity = table.identityColumns.map(\.slot)
        columns = entity.columns.map { [identity] column in (column.slot, identity.contains(column.slot)) }
    }

    func identity(_ row: PlainLogRow) -> StableID? {
        StableID(columns: identity.count) { row.value(slot: identity[$0]) }
    }
}

extension Entity {
    /// Returns the column's name, and its former names. A name that is in use belongs to the column that has it.
    package func names(_ column: EntityColumn) -> (name: String, formerNames: [String]) {
        (column.name, column.formerNames.filter { name in !columns.contains { $0.name == name } })
    }
}
