import GRDB
import MartletStore

/// A change of another node in the terms of this store.
struct RemoteChange {
    var table: EntityTable
    var kind: ChangeKind
    var identity: StableID
    /// What the identity was made of, where the change came from the wire.
    var identityValues: [Value] = []
    var stamp: Stamp
    var columns: [RemoteColumn]
    /// The columns as a whole, where the change came from the wire.
    var shape: ColumnShape?
    /// On delete: the newest value that the deleter had seen.
    var replaces: HybridTime
    var localID: Int64?
    /// Where the change is what a snapshot or a check says of the row.
    var state: RowState?

    var entity: Entity { table.entity }
}

/// All registers of a row at once, as a snapshot has them. What each value replaced is not known.
struct RowState {
    var clocks: RowClocks
    /// The node that reads the snapshot, and its first change that whoever made the snapshot had not seen.
    var reader: NodeID
    var unseen: HybridTime
    /// True where a check found that this node lacks it: whatever it overrules here is noted.
    var isMending = false
}

extension RemoteChange {
    func merge(into clocks: inout RowClocks) -> RowClocks.Outcome {
        let slots = columns.map(\.slot)
        if let state { return clocks.merge(state.clocks, bringing: slots, of: table.slots) }
        return kind == .insert
            ? clocks.insert(slots, of: table.slots, at: stamp) : clocks.update(slots, at: stamp)
    }

    /// True where whoever made the change knew of a value that was set then.
    func hasSeen(_ local: Stamp, replaces: HybridTime) -> Bool {
        if state?.isMending ?? false { return false }
        if let state { return local.node != state.reader || local.time < state.unseen }
        return local.time <= replaces || local.node == stamp.node
    }

    /// When the change sets the column.
    func stamp(of slot: Int) -> Stamp { state?.clocks.stamp(of: slot) ?? stamp }
}

/// Why a change can't be understood here yet.
struct UnknownSchema: Error {
    var detail: String
    var reason = ParkReason.unknownSchema
}

extension RemoteChange {
    /// - Parameter takesIgnored: true where the change counts although its table is ignored.
    /// - Throws: ``UnknownSchema`` where this store has no such table or column, or ignores the table, ``WireError``
    ///   for nonsense.
    init(_ wire: WireChange, stamp: Stamp, context: EngineContext, takesIgnored: Bool = false) throws {
        try self.init(DecodedChange(wire), stamp: stamp, context: context, takesIgnored: takesIgnored)
    }

    /// The same for a change that was decoded before.
    init(_ decoded: DecodedChange, stamp: Stamp, context: EngineContext, takesIgnored: Bool = false) throws {
        let former = decoded.wire.formerEntities
        if !takesIgnored, context.filters.ignores(decoded.entity, former) {
            throw UnknownSchema(detail: "table \(decoded.entity) is ignored", reason: .filtered)
        }
        guard let table = context.table(named: decoded.entity, former) else {
            throw UnknownSchema(detail: "table \(decoded.entity)")
        }
        if !takesIgnored, context.filters[table.entity]?.isIgnored ?? false {
            throw UnknownSchema(detail: "table \(table.entity.name) is ignored", reason: .filtered)
        }
        self.table = table
        let decoded = table.shared(decoded)
        let row = try decoded.row.get()
        kind = row.kind
        // A name is taken as it is: another node may have named the row by another rule. Not where the name is what
        // leads to the row.
        let takesAnyName = table.hasLocalKey
        identityValues = row.identityValues
        guard takesAnyName || table.isNamed(by: identityValues) else {
            throw UnknownSchema(detail: "identity of \(decoded.entity)")
        }
        identity = row.identity
        self.stamp = stamp
        let shape = try table.shape(of: decoded)
        self.shape = shape
        columns = try decoded.columns.get()
        for index in columns.indices {
            columns[index].slot = shape.slots[index]
            guard case .reference(var reference) = columns[index].value,
                context.catalog[reference.entity]?.name != reference.entity
            else { continue }
            let former = decoded.wire.columns[index].value.reference.formerEntities
            guard let known = context.catalog.entity(reference.entity, former) else {
                throw UnknownSchema(detail: "table \(reference.entity)")
            }
            reference.entity = known.name
            columns[index].value = .reference(reference)
        }
        // Also where the author's rows are named by other columns, or by IDs of Martlet's.
        if !takesAnyName, kind != .delete, !shape.isFreeOfIdentity {
            for (column, value) in zip(table.identityColumns, identityValues)
            where columns.contains(where: { $0.slot == column.slot && $0.value != value }) {
                throw UnknownSchema(detail: "identity of \(decoded.entity)")
            }
        }
        replaces = HybridTime(rawValue: decoded.wire.replaces)
        localID = decoded.wire.hasLocalID ? RowNumber.takenOver(decoded.wire.localID) : nil
    }
}

extension DecodedChange {
    /// What of the change is for columns that are local here, as an update of its own. Nil where nothing is.
    func localPart(_ table: EntityTable) -> WireChange? {
        guard table.hasLocalColumns else { return nil }
        let columns = table.local(wire.columns)
        guard !columns.isEmpty else { return nil }
        var part = wire
        part.kind = .update
        part.columns = columns
        part.clearLocalID()
        return part
    }
}

extension Catalog {
    /// The table of this name, or else one that is still called as it was before.
    func entity(_ name: String, _ formerNames: [String]) -> Entity? {
        self[name] ?? formerNames.lazy.compactMap { self[$0] }.first
    }
}
