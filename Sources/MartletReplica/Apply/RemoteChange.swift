import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
package import MartletWire

/// A remote change in terms of this store.
package struct RemoteChange {
    package var table: EntityTable
    package var kind: ChangeKind
    package var identity: StableID
    /// The values that make up the identity, if the change came from the wire.
    package var identityValues: [Value] = []
    package var stamp: Stamp
    package var columns: [RemoteColumn]
    /// The list of columns, if the change came from the wire.
    package var shape: ColumnShape?
    /// For a delete: the newest value that its author had seen.
    package var replaces: HybridTime
    package var localID: Int64?
    /// Set if the change is a row's state from a snapshot or a check.
    package var state: RowState?

    package var entity: Entity { table.entity }
}

/// All registers of a row at once, as a snapshot has them. What each value replaced is not known.
package struct RowState {
    package var clocks: RowClocks
    /// The local stamps that the snapshot's maker had not seen.
    package var unseen: UnseenStamps
    /// True if a check found that this node lacks the state: everything that it overrules here is journaled.
    package var isRepair = false

    package init(clocks: RowClocks, unseen: UnseenStamps, isRepair: Bool = false) {
        self.clocks = clocks
        self.unseen = unseen
        self.isRepair = isRepair
    }
}

extension RemoteChange {
    package func merge(into clocks: inout RowClocks) -> RowClocks.Outcome {
        let slots = columns.map(\.slot)
        if let state { return clocks.merge(state.clocks, bringing: slots, of: table.slots) }
        return kind == .insert
            ? clocks.insert(slots, of: table.slots, at: stamp) : clocks.update(slots, at: stamp)
    }

    /// Merges the change with everything known of a row that is not in its table.
    func merge(into pendingRow: inout PendingRow) -> RowClocks.Outcome {
        let outcome = merge(into: &pendingRow.clocks)
        for column in columns where outcome.won.contains(column.slot) {
            pendingRow.values[column.slot] = column.value
        }
        pendingRow.dropOverruled()
        return outcome
    }

    /// Merges only that the row exists, or was deleted, with the columns that identify it: a row has their values.
    package func mergeExistence(into clocks: inout RowClocks) {
        let slots = table.identityColumns.map(\.slot)
        if let state {
            _ = clocks.merge(state.clocks, bringing: slots, of: table.slots)
        } else if kind == .insert {
            _ = clocks.insert(slots, of: table.slots, at: stamp)
        }
    }

    /// Returns true if the author of the change knew of a value that was set then.
    package func hasSeen(_ local: Stamp, replaces: HybridTime) -> Bool {
        if state?.isRepair ?? false { return false }
        if let state { return !state.unseen.contains(local) }
        return local.time <= replaces || local.node == stamp.node
    }

    /// Returns true only if the author of the delete knew of every value of the row.
    ///
    /// The newest one decides, but not by its author: a delete that is published again, as after a restamp, replaces
    /// nothing, and its author may not have seen older values of other nodes.
    func hasSeenAll(of clocks: RowClocks) -> Bool { clocks.newest.map { $0.time <= replaces } ?? true }

    /// Returns the stamp with which the change sets the column.
    package func stamp(of slot: Int) -> Stamp { state?.clocks.stamp(of: slot) ?? stamp }
}

extension RemoteChange {
    /// - Parameter takesIgnored: true if the change counts although its table is ignored.
    /// - Throws: ``UnknownSchema`` if this store has no such table or column, or ignores the table,
    ///   ``/MartletWire/WireError`` if the change is invalid.
    package init(_ wire: WireChange, stamp: Stamp, context: ReplicaContext, takesIgnored: Bool = false) throws {
        try self.init(DecodedChange(wire), stamp: stamp, context: context, takesIgnored: takesIgnored)
    }

    /// The same for a change that was decoded before.
    package init(_ decoded: DecodedChange, stamp: Stamp, context: ReplicaContext, takesIgnored: Bool = false) throws {
        let former = decoded.formerEntities
        if !takesIgnored, context.filters.ignores(decoded.entity, former) {
            throw UnknownSchema(detail: "table \(decoded.entity) is ignored", isFiltered: true)
        }
        guard let table = context.table(named: decoded.entity, former) else {
            throw UnknownSchema(detail: "table \(decoded.entity)")
        }
        if !takesIgnored, context.filters[table.entity]?.isIgnored ?? false {
            throw UnknownSchema(detail: "table \(table.entity.name) is ignored", isFiltered: true)
        }
        self.table = table
        let decoded = try table.shared(decoded)
        let row = try decoded.row.get()
        kind = row.kind
        // An ID is taken as it is, since another node may have another identity rule. Not if the row can only be found
        // by its ID.
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
            let former = try decoded.message().columns[index].value.reference.formerEntities
            guard let known = context.catalog.entity(reference.entity, former) else {
                throw UnknownSchema(detail: "table \(reference.entity)")
            }
            reference.entity = known.name
            columns[index].value = .reference(reference)
        }
        // Also if the author's rows are identified by other columns, or by IDs that Martlet assigned.
        if !takesAnyName, kind != .delete, !shape.isFreeOfIdentity {
            for (column, value) in zip(table.identityColumns, identityValues)
            where columns.contains(where: { $0.slot == column.slot && $0.value != value }) {
                throw UnknownSchema(detail: "identity of \(decoded.entity)")
            }
        }
        replaces = decoded.replaces
        localID = decoded.localID.flatMap(RowNumber.takenOver)
    }
}

extension DecodedChange {
    /// Returns the part of the change that concerns columns which are local here, as a separate update. Nil if there is
    /// none.
    package func localPart(_ table: EntityTable) throws(WireError) -> WireChange? {
        guard table.hasLocalColumns, !table.takesAll(names) else { return nil }
        var part = try message()
        let columns = table.local(part.columns)
        guard !columns.isEmpty else { return nil }
        part.kind = .update
        part.columns = columns
        part.clearLocalID()
        return part
    }
}
