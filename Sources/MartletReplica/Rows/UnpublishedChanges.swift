import Foundation
package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
package import MartletWire

/// Publishes what a filter kept on this node, in the caller's transaction, in which everything local is stamped.
package struct UnpublishedChanges {
    package let db: Database
    package let context: ReplicaContext
    private let applier: Applier

    package init(_ db: Database, _ context: ReplicaContext) {
        self.db = db
        self.context = context
        applier = Applier(db, context)
    }

    /// Returns true if a filter kept changes on this node to rows that other nodes have.
    package static func existOfKnownRows(_ db: Database) throws -> Bool {
        try Meta.integer(db, SyncMeta.unpublishedOfKnown) != nil
    }

    /// Gives the unpublished parts of a row a new stamp, so that they count as set now: no other node knows when they
    /// were really set.
    ///
    /// - Parameter slots: columns to include whatever their stamp.
    /// - Returns: the change to publish. Nil if there is none.
    package func release(_ table: EntityTable, _ identity: StableID, at stamp: Stamp, with slots: Set<Int> = []) throws
        -> WireChange?
    {
        guard let record = try applier.record(table, identity) else { return nil }
        if record.clocks.deleted?.node == .unpublished, !record.clocks.isAlive {
            try context.tombstones.set(db, table.entity.id, identity, stamp)
            return try record.message(.delete, table.entity, [], stamp, context)
        }
        guard record.clocks.isAlive else { return nil }
        let isWhole = record.clocks.isUnpublished
        let columns = table.entity.sharedColumns.filter { column in
            isWhole || slots.contains(column.slot) || record.clocks.stamp(of: column.slot)?.node == .unpublished
        }
        guard isWhole || !columns.isEmpty else { return nil }
        var exceptions = ColumnStamps()
        if !isWhole {
            exceptions = record.clocks.exceptions
            for column in columns { exceptions[column.slot] = stamp }
        }
        let clocks = RowClocks(
            inserted: isWhole ? stamp : record.clocks.inserted, deleted: record.clocks.deleted, exceptions: exceptions)
        if let found = try table.find(db, identity) {
            try table.saveClocks(db, row: found.address.row, identity, clocks)
        } else {
            try savePendingRow(table, identity, stamp, isWhole: isWhole, columns.map(\.slot))
        }
        return try record.message(isWhole ? .insert : .update, table.entity, columns, stamp, context)
    }

    /// Restamps a pending row, which stays pending for the same reason.
    private func savePendingRow(
        _ table: EntityTable, _ identity: StableID, _ stamp: Stamp, isWhole: Bool, _ slots: [Int]
    ) throws {
        let pendingRows = PendingRows(db: db, context: context)
        if isWhole { try pendingRows.restampInsert(table, identity, stamp) }
        for slot in slots { try pendingRows.restamp(table, identity, slot: slot, stamp) }
    }
}

extension RowRecord {
    /// Returns a change that sets the row, or these columns, at a stamp. Its step is the whole clock reading.
    package func message(
        _ kind: WireChangeKind, _ entity: Entity, _ columns: [EntityColumn], _ stamp: Stamp, _ context: ReplicaContext
    ) throws -> WireChange {
        let formerNames: (String) -> [String] = { context.catalog[$0]?.formerNames ?? [] }
        var message = WireChange()
        message.entity = entity.name
        message.kind = kind
        message.formerEntities = entity.formerNames
        message.identity = try identity.values().map { try WireValue($0, formerNames: formerNames) }
        message.clockStep = stamp.time.rawValue
        if kind == .insert, entity.localKey != nil, let row = localID { message.localID = row }
        message.columns = try columns.compactMap { column in
            guard let value = values[column.slot] else { return nil }
            var wire = WireColumn()
            wire.name = column.name
            wire.value = try WireValue(value, formerNames: formerNames)
            wire.formerNames = entity.names(column).formerNames
            return wire
        }
        return message
    }
}
