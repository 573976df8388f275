package import GRDB

/// A row of the log, decoded as far as the catalog goes.
package struct LogChange {
    package var id: Int64
    package var entity: Entity
    package var row: Int64?
    package var kind: ChangeKind
    /// Milliseconds since 1970.
    package var time: Int64
    /// The columns that the change carries, with their values as they are in this file. On delete what was preserved.
    package var values: [(column: EntityColumn, value: Value)]
    /// The state before an update: its integer key, and the values that were kept.
    package var before: (row: Int64?, values: [(column: EntityColumn, value: Value)])?

    package func value(of column: EntityColumn) -> Value? {
        values.first { $0.column.slot == column.slot }?.value
    }
}

/// Reads changes from the log, in order. Changes of entities that are no longer tracked are left out.
///
/// Confined to its connection.
package final class LogReader {
    private let catalog: Catalog
    private let select: PreparedStatement
    private let firstSlot: Int32 = 6

    package init(_ db: Database, catalog: Catalog) throws {
        self.catalog = catalog
        let slots = catalog.entities.flatMap { $0.columns.map(\.slot) }.max() ?? 0
        let columns = slots == 0 ? "" : (1...slots).map { ", c\($0)" }.joined()
        select = try PreparedStatement(
            db, "SELECT id, e, r, k, m, t\(columns) FROM \(InternalName.log) WHERE id >= ?1 AND id < ?2 AND e <> 0 ORDER BY id")
    }

    /// Calls `body` with each change whose id is in the range.
    package func forEach(from first: Int64, to end: Int64, _ body: (LogChange) throws -> Void) throws {
        select.bind(1, first)
        select.bind(2, end)
        defer { select.reset() }
        var before: (row: Int64?, values: [(column: EntityColumn, value: Value)])?
        while try select.step() {
            let id = select.integer(0)
            guard let entity = catalog[select.integer(1)] else { continue }
            let code = select.integer(3)
            let row = select.optionalInteger(2)
            if code == ChangeKind.Mark.before {
                before = (row, entity.columns.map { ($0, select.value(firstSlot + Int32($0.slot - 1))) })
                continue
            }
            guard let kind = ChangeKind(code: code) else { continue }
            let mask = kind == .update ? ChangeMask(select.value(4)) : nil
            let identity = kind == .insert ? [] : entity.identityColumns.map(\.slot)
            var values: [(column: EntityColumn, value: Value)] = []
            values.reserveCapacity(entity.columns.count)
            for column in entity.columns where column.since <= id {
                let isHere =
                    switch kind {
                    case .insert: true
                    case .update: mask?.contains(slot: column.slot) == true || identity.contains(column.slot)
                    case .delete: entity.keepsOldValues || identity.contains(column.slot)
                    }
                if isHere { values.append((column, select.value(firstSlot + Int32(column.slot - 1)))) }
            }
            try body(
                LogChange(
                    id: id, entity: entity, row: row, kind: kind, time: select.integer(5), values: values,
                    before: kind == .update ? before : nil))
            before = nil
        }
    }
}

extension LogChange {
    /// Columns that the update really changed: identity columns are carried also where they are as before.
    package func isChanged(_ column: EntityColumn) -> Bool {
        guard kind == .update, entity.identityColumns.contains(where: { $0.slot == column.slot }) else { return true }
        guard let old = before?.values.first(where: { $0.column.slot == column.slot })?.value else { return false }
        return old != value(of: column)
    }
}
