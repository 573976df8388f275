import Foundation
package import GRDB
import MartletCore
import MartletStore
package import MartletWire

/// Inserts rows of a snapshot that meet nothing special, which are nearly all of them, without translating each of them
/// into a change. It decides nothing: if anything would have to be decided, it writes nothing, and the row is merged
/// like any other.
///
/// For one part of a snapshot: schema and filters may differ when the next one is applied.
package struct PlainSnapshotTables {
    private struct Table {
        let table: EntityTable
        /// The snapshot's columns, which are all columns of the table.
        let shape: ColumnShape
        /// Where the identity columns are among them: none of these refers to a row. Nil if Martlet assigns the IDs.
        let identity: [Int]?
    }

    private let db: Database
    private let context: ReplicaContext
    /// The tables by their places in the header. Nil for those whose rows have to be translated.
    private let tables: [Table?]
    private let nodes: [NodeID]
    private let latest: HybridTime

    package init(_ db: Database, _ context: ReplicaContext, _ header: WireSnapshotHeader) throws {
        self.db = db
        self.context = context
        latest = HybridTime(rawValue: header.hlc)
        nodes = header.nodes.compactMap { NodeID(bytes: $0) }
        // Damage is reported where rows are translated.
        guard nodes.count == header.nodes.count else {
            tables = []
            return
        }
        tables = try header.entities.map { try Self.table($0, context) }
    }

    private static func table(_ wire: WireSnapshotEntity, _ context: ReplicaContext) throws -> Table? {
        guard context.encoding == .utf8, !context.filters.ignores(wire.name, wire.formerNames),
            let table = context.table(named: wire.name, wire.formerNames), table.isPlain, !table.hasLocalColumns,
            table.entity.goneColumns.isEmpty
        else { return nil }
        if let rule = context.filters[table.entity], rule.isIgnored || rule.subscribe != nil { return nil }
        var change = WireChange()
        change.entity = wire.name
        change.columns = wire.columns.map { column in
            var wire = WireColumn()
            wire.name = column.name
            wire.formerNames = column.formerNames
            return wire
        }
        let shape: ColumnShape
        do {
            shape = try table.shape(of: DecodedChange(change))
        } catch is UnknownSchema {
            return nil
        }
        guard shape.isWhole, shape.isFreeOfValueKeys else { return nil }
        if table.hasLocalKey { return Table(table: table, shape: shape, identity: nil) }
        let places = table.identityColumns.compactMap { column in shape.slots.firstIndex(of: column.slot) }
        guard places.count == table.identityColumns.count else { return nil }
        return Table(table: table, shape: shape, identity: places)
    }

    /// - Returns: true if the row was inserted.
    package func insert(_ row: PlainSnapshotRow, with applier: Applier) throws -> Bool {
        guard row.entity < tables.count, let target = tables[row.entity], row.node < nodes.count, row.time <= latest,
            row.values.count == target.shape.slots.count
        else { return false }
        let key = row.localID.flatMap(RowNumber.takenOver)
        guard target.table.hasLocalKey == (key != nil) else { return false }
        if let places = target.identity {
            guard row.identityValues.count == places.count,
                zip(places, row.identityValues).allSatisfy({ row.values[$0] == $1 })
            else { return false }
        }
        guard let values = try localValues(row, target.shape), target.shape.keeps(values) else { return false }
        return try applier.insertOnFastPath(
            row.identity, row: key, into: target.table, target.shape, values,
            at: row.time == .zero ? .zero : Stamp(time: row.time, node: nodes[row.node]))
    }

    /// Returns the values as this file stores them. Nil if a reference has no target here, or is none here.
    private func localValues(_ row: PlainSnapshotRow, _ shape: ColumnShape) throws -> [Value]? {
        // References among the values are found with the values that the columns don't keep.
        guard !shape.isFreeOfReferences else { return row.values }
        var values = row.values
        for index in values.indices {
            let name = shape.references[index]
            guard case .reference(let reference) = values[index] else {
                if name != nil, !values[index].isNull { return nil }
                continue
            }
            guard reference.entity == name, let target = context.catalog[reference.entity],
                let key = try context.resolver.row(db, target, reference.identity)
            else { return nil }
            values[index] = .integer(key)
        }
        return values
    }
}
