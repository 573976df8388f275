import MartletCore
import MartletMerge
import MartletStore
import MartletWire

/// The fast path for local changes that meet nothing special, which is nearly all of them in a ``PlainTable``. Like the
/// applier's, it decides nothing: if anything would have to be decided (a row that was there before, a changed ID, a
/// pending change), it writes nothing and leaves the change to the slow path. Otherwise it writes exactly what the slow
/// path would have written.
extension Enqueuer {
    /// - Returns: the size of the change's texts and blobs, in bytes. Nil if the change was not enqueued.
    func enqueueOnFastPath(_ row: PlainLogRow, _ wire: inout OutgoingChanges) throws -> Int? {
        guard context.pendingRows.count == 0, context.pendingReferences.isEmpty, early.isEmpty, context.reused.isEmpty,
            let plain = context.plainTable(row.entity), !plain.table.recordsNames, !row.hasKey,
            let identity = plain.identity(row)
        else { return nil }
        switch row.kind {
        case .insert: return try insertOnFastPath(row, identity, plain, &wire)
        case .update: return try updateOnFastPath(row, identity, plain, &wire)
        case .delete: return try deleteOnFastPath(row, identity, plain, &wire)
        }
    }

    private func insertOnFastPath(
        _ row: PlainLogRow, _ identity: StableID, _ plain: PlainTable, _ wire: inout OutgoingChanges
    ) throws -> Int? {
        guard try context.tombstones.find(db, row.entity, identity) == nil,
            try plain.table.side.find(db, identity) == nil
        else { return nil }
        let stamp = Stamp(time: context.clock.tick(at: row.time), node: context.node)
        try context.recent.set(db, row.entity, identity, RowClocks(inserted: stamp))
        return append(row, plain, at: stamp, to: &wire) { _, _ in true }
    }

    private func updateOnFastPath(
        _ row: PlainLogRow, _ identity: StableID, _ plain: PlainTable, _ wire: inout OutgoingChanges
    ) throws -> Int? {
        let mask = row.mask
        let slots = plain.columns.compactMap { mask.contains(slot: $0.slot) ? $0.slot : nil }
        guard !slots.isEmpty, !plain.identity.contains(where: mask.contains),
            let known = try plain.table.side.find(db, identity)?.clocks, !known.isUnpublished
        else { return nil }
        let stamp = Stamp(time: context.clock.tick(at: row.time), node: context.node)
        var clocks = known
        _ = clocks.update(slots, at: stamp)
        try context.recent.set(db, row.entity, identity, clocks)
        return append(row, plain, at: stamp, to: &wire, replacing: known) { slot, _ in mask.contains(slot: slot) }
    }

    private func deleteOnFastPath(
        _ row: PlainLogRow, _ identity: StableID, _ plain: PlainTable, _ wire: inout OutgoingChanges
    ) throws -> Int? {
        guard let known = try plain.table.side.find(db, identity)?.clocks, !known.isUnpublished else { return nil }
        let stamp = Stamp(time: context.clock.tick(at: row.time), node: context.node)
        try context.tombstones.set(db, row.entity, identity, stamp)
        try context.tombstones.makeLasting(db, row.entity, identity, of: known)
        try context.recent.set(db, row.entity, identity, nil)
        return append(row, plain, at: stamp, to: &wire, deleted: known.newest?.time ?? .zero) { _, isIdentity in
            isIdentity
        }
    }

    /// Adds the change to the message, with the columns that it has.
    private func append(
        _ row: PlainLogRow, _ plain: PlainTable, at stamp: Stamp, to wire: inout OutgoingChanges,
        replacing known: RowClocks? = nil, deleted: HybridTime = .zero,
        _ hasColumn: (_ slot: Int, _ isIdentity: Bool) -> Bool
    ) -> Int {
        var byteCount = 0
        wire.append(plain: row.kind, of: plain.names, at: stamp.time, replaces: deleted) { fields in
            for slot in plain.identity {
                let value = row.value(slot: slot)
                // An update carries these values, too, although its message has them only once.
                if row.kind == .update { byteCount += value.byteCount }
                fields.append(identity: value)
            }
            for (place, column) in plain.columns.enumerated() where hasColumn(column.slot, column.isIdentity) {
                let value = row.value(slot: column.slot)
                byteCount += value.byteCount
                fields.append(place, value, replaces: known?.stamp(of: column.slot)?.time ?? .zero)
            }
        }
        return byteCount
    }
}
