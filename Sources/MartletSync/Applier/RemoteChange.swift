import GRDB
import MartletStore

/// A change of another node in the terms of this store.
struct RemoteChange {
    var table: EntityTable
    var kind: ChangeKind
    var identity: StableID
    var stamp: Stamp
    var columns: [RemoteColumn]
    /// On delete: the newest value that the deleter had seen.
    var replaces: HybridTime
    var localID: Int64?

    var entity: Entity { table.entity }
}

struct RemoteColumn {
    var slot: Int
    var value: Value
    /// The value that its author saw before.
    var replaces: HybridTime
}

/// Why a change can't be understood here yet.
struct UnknownSchema: Error {
    var detail: String
}

extension RemoteChange {
    /// - Throws: ``UnknownSchema`` where this store has no such table or column, ``WireError`` for nonsense.
    init(_ wire: WireChange, stamp: Stamp, context: EngineContext) throws {
        guard let entity = context.catalog[wire.entity] else { throw UnknownSchema(detail: "table \(wire.entity)") }
        table = context.table(entity)
        switch wire.kind {
        case .insert: kind = .insert
        case .update: kind = .update
        case .delete: kind = .delete
        default: throw WireError("A change of \(wire.entity) is of an unknown kind.")
        }
        guard !wire.identity.isEmpty else { throw WireError("A change of \(wire.entity) has no identity.") }
        // Rows of a table that is attached under another identity there are not the rows of this one.
        let count = entity.identity == .hidden ? 1 : entity.identityColumns.count
        guard wire.identity.count == count else { throw UnknownSchema(detail: "identity of \(wire.entity)") }
        identity = try StableID(wire: wire.identity)
        self.stamp = stamp
        columns = []
        columns.reserveCapacity(wire.columns.count)
        for column in wire.columns {
            guard let known = table.column(named: column.name) else {
                throw UnknownSchema(detail: "column \(wire.entity).\(column.name)")
            }
            let value = try column.value.value()
            if case .reference(let reference) = value, context.catalog[reference.entity] == nil {
                throw UnknownSchema(detail: "table \(reference.entity)")
            }
            columns.append(
                RemoteColumn(
                    slot: known.slot, value: value, replaces: HybridTime(rawValue: column.replaces)))
        }
        replaces = HybridTime(rawValue: wire.replaces)
        localID = wire.hasLocalID ? wire.localID : nil
    }
}
