package import Foundation
package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
package import MartletWire

/// Reads rows with their clocks, pending rows too, in the terms that every node understands.
package final class SnapshotRowEncoder {
    private let db: Database
    private let context: ReplicaContext
    private let pendingRows: PendingRows
    /// Referencing tables come after the tables that they refer to, as far as possible: pending changes slow the reader
    /// down.
    package let entities: [Entity]
    package let nodes: [NodeID]
    private let places: [Int64: UInt32]
    private let nodePlaces: [NodeID: UInt32]

    package init(_ db: Database, _ context: ReplicaContext) throws {
        self.db = db
        self.context = context
        pendingRows = PendingRows(db: db, context: context)
        entities = Self.targetsFirst(context.catalog)
        places = Dictionary(uniqueKeysWithValues: entities.enumerated().map { ($1.id, UInt32($0)) })
        var nodes = [NodeID.none]
        for row in try Row.fetchAll(db, sql: "SELECT id FROM \(InternalName.nodes) ORDER BY id") {
            let node = context.nodes.node(row["id"])
            if node != .none { nodes.append(node) }
        }
        self.nodes = nodes
        nodePlaces = Dictionary(nodes.enumerated().map { ($1, UInt32($0)) }, uniquingKeysWith: { a, _ in a })
    }

    private static func targetsFirst(_ catalog: Catalog) -> [Entity] {
        var sorted: [Entity] = []
        var seen: Set<Int64> = []
        func visit(_ entity: Entity) {
            guard seen.insert(entity.id).inserted else { return }
            for key in entity.foreignKeys { if let target = catalog[key.target] { visit(target) } }
            sorted.append(entity)
        }
        for entity in catalog.entities { visit(entity) }
        return sorted
    }

    /// The tables as a header names them.
    package var wireEntities: [WireSnapshotEntity] {
        entities.map { entity in
            var wire = WireSnapshotEntity()
            wire.name = entity.name
            wire.formerNames = entity.formerNames
            wire.ignored = context.filters[entity]?.isIgnored ?? false
            wire.columns = entity.sharedColumns.map { column in
                var wire = WireSnapshotColumn()
                wire.name = column.name
                wire.formerNames = entity.names(column).formerNames
                return wire
            }
            return wire
        }
    }

    package var wireNodes: [Data] { nodes.map { Data($0.bytes) } }

    package func place(of entity: Entity) -> UInt32 { places[entity.id] ?? 0 }

    package func stamp(_ stamp: Stamp) -> WireSnapshotStamp {
        var wire = WireSnapshotStamp()
        wire.hlc = stamp.time.rawValue
        wire.node = nodePlaces[stamp.node] ?? 0
        return wire
    }

    package func wire(_ identity: StableID) throws -> [WireValue] { try identity.values().map(wire) }

    private func wire(_ value: Value) throws -> WireValue {
        try WireValue(value, formerNames: { context.catalog[$0]?.formerNames ?? [] })
    }

    // MARK: Rows

    package func forEachRow(of entity: Entity, _ add: (WireSnapshotRow, _ size: Int) throws -> Void) throws {
        try forEachRecord(of: entity) { record in
            guard let record = record.published else { return }
            let (wire, size) = try encode(entity, record)
            try add(wire, size)
        }
    }

    /// Reads the rows that are in the table.
    ///
    /// - Parameter hasPending: whether references that wait for their target have it already. False: as in the table.
    package func forEachRecord(
        of entity: Entity, hasPending: Bool = true, _ body: (RowRecord) throws -> Void
    ) throws {
        let table = context.table(entity)
        let columns = entity.columns
        let names = columns.map { ", t.\($0.name.quotedName)" }.joined()
        let source = entity.name.quotedName
        let read =
            if let key = entity.integerKey?.quotedName {
                try PreparedStatement(
                    db,
                    """
                    SELECT t.\(key), s.ident, s.hlc, s.node, s.attrs\(names) FROM \(source) AS t
                    LEFT JOIN \(InternalName.side(entity.id)) AS s ON s.row = t.\(key) ORDER BY t.\(key)
                    """)
            } else {
                try PreparedStatement(db, "SELECT NULL, NULL, NULL, NULL, NULL\(names) FROM \(source) AS t")
            }
        let pending = hasPending ? try pendingReferences(of: entity) : [:]
        while try read.step() {
            let row = read.optionalInteger(0)
            var values: [Int: Value] = [:]
            values.reserveCapacity(columns.count)
            for (index, column) in columns.enumerated() {
                values[column.slot] = try portable(read.value(Int32(index + 5)), column)
            }
            let kept = table.recordsNames ? read.optionalBlob(1).map(StableID.init(bytes:)) : nil
            // A row without an identity is not synced.
            guard let identity = kept ?? table.declaredIdentity(values) else { continue }
            let clocks: RowClocks
            if row == nil {
                clocks = try table.side.find(db, identity)?.clocks ?? RowClocks(inserted: .zero)
            } else {
                clocks =
                    read.isNull(2)
                    ? RowClocks(inserted: .zero) : context.clocks.decode(read, from: 2, of: entity.id)
            }
            for (slot, value) in pending[identity] ?? [] { values[slot] = value }
            let localID = entity.localKey == nil ? nil : row
            try body(RowRecord(identity: identity, clocks: clocks, values: values, localID: localID))
        }
    }

    /// Passes pending rows, and pending changes of rows that are in their table.
    package func forEachPendingRow(_ add: (WireSnapshotRow, _ size: Int) throws -> Void) throws {
        for name in try pendingRows.all() where !name.identity.hasNoIdentity {
            guard let entity = context.catalog[name.entity],
                let pendingRow = try pendingRows.load(context.table(entity), name.identity)
            else { continue }
            guard let record = RowRecord(name.identity, pendingRow).published else { continue }
            let (wire, size) = try encode(entity, record)
            try add(wire, size)
        }
    }

    package func encode(_ entity: Entity, _ record: RowRecord) throws -> (WireSnapshotRow, size: Int) {
        let (identity, clocks, values) = (record.identity, record.clocks, record.values)
        var row = WireSnapshotRow()
        row.entity = place(of: entity)
        row.identity = try wire(identity)
        var size = identity.bytes.count + 40
        let columns = entity.sharedColumns
        row.values.reserveCapacity(columns.count)
        var places: [UInt32] = []
        for (index, column) in columns.enumerated() {
            guard let value = values[column.slot] else { continue }
            places.append(UInt32(index))
            row.values.append(try wire(value))
            size += value.size
            if let exception = clocks.exceptions[column.slot] {
                var wire = WireSnapshotException()
                wire.column = UInt32(index)
                wire.stamp = stamp(exception)
                row.exceptions.append(wire)
                size += 16
            }
        }
        if places.count != columns.count || places.isEmpty { row.columns = places }
        if let inserted = clocks.inserted { row.inserted = stamp(inserted) }
        if let deleted = clocks.deleted { row.deleted = stamp(deleted) }
        if let localID = record.localID { row.localID = localID }
        return (row, size)
    }

    private func portable(_ value: Value, _ column: EntityColumn) throws -> Value {
        guard let name = column.reference, let row = column.referredRow(value), let target = context.catalog[name],
            let identity = try context.resolver.identity(db, target, row: row)
        else { return value }
        return .reference(Reference(entity: name, identity: identity))
    }

    private func pendingReferences(of entity: Entity) throws -> [StableID: [(Int, Value)]] {
        try context.pendingReferences.isEmpty ? [:] : PendingReferences.all(db, of: entity)
    }
}

extension WireValue {
    /// The value, with the former names of the tables that it refers to.
    package init(_ value: Value, formerNames: (String) -> [String]) throws {
        try self.init(value)
        guard case .reference(var reference) = kind else { return }
        reference.formerEntities = formerNames(reference.entity)
        if !reference.formerEntities.isEmpty { kind = .reference(reference) }
    }
}

extension Value {
    /// The approximate size on the wire, in bytes.
    fileprivate var size: Int {
        switch self {
        case .null: 4
        case .integer, .real: 12
        case .text(let text): text.utf8.count + 8
        case .blob(let bytes), .rawText(let bytes): bytes.count + 8
        case .reference(let reference): reference.entity.utf8.count + reference.identity.bytes.count + 12
        }
    }
}
