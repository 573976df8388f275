import Foundation
package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
import MartletWire

/// Reads everything that the store knows about rows, table by table. In the caller's read transaction, in which every
/// local change is enqueued.
package final class RecordReader {
    private let db: Database
    package let context: ReplicaContext
    package let encoder: SnapshotRowEncoder
    private let pendingRows: PendingRows
    /// Deleted rows without a stamp after this time are skipped: some nodes have collected their tombstones.
    package var ignored = HybridTime.zero

    package init(_ db: Database, _ context: ReplicaContext) throws {
        self.db = db
        self.context = context
        encoder = try SnapshotRowEncoder(db, context)
        pendingRows = PendingRows(db: db, context: context)
    }

    /// Returns the number of rows in the entity's table.
    package static func rowCount(_ db: Database, _ entity: Entity) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM \(entity.name.quotedName)") ?? 0
    }

    /// Passes each row of the entity once, if other nodes may know it: rows in the table, pending rows, and deleted
    /// rows. One row at a time is in memory.
    package func forEach(_ entity: Entity, _ each: (RowRecord) throws -> Void) throws {
        func body(_ record: RowRecord) throws {
            guard let record = record.published, !record.clocks.isCollected(by: ignored) else { return }
            try each(record)
        }
        let table = context.table(entity)
        try encoder.forEachRecord(of: entity) { record in
            guard let pending = try pendingRows.load(table, record.identity) else { return try body(record) }
            var whole = record
            whole.add(pending.values, at: pending.clocks)
            try body(whole)
        }
        try pendingRows.forEachAbsent(from: table, body)
        try context.tombstones.forEach(db, of: entity.id) { stone in
            let identity = stone.identity
            guard try table.find(db, identity) == nil, try pendingRows.load(table, identity) == nil else { return }
            try body(RowRecord(identity: identity, clocks: RowClocks(deleted: stone.stamp), values: [:]))
        }
    }

    /// Returns the digest of each of these ranges. They may have several levels, and lie within each other.
    package func sums(of entity: Entity, _ ranges: [KeyRange], countsUnclocked: Bool = false) throws -> [KeyRange:
        RangeSum]
    {
        let shape = RecordShape(entity)
        var sums = Dictionary(ranges.map { ($0, RangeSum()) }, uniquingKeysWith: { a, _ in a })
        let levels = Set(ranges.map(\.level)).sorted()
        try forEach(entity) { record in
            let position = KeyRange.position(record.identity)
            let wanted = levels.map { KeyRange(position, level: $0) }.filter { sums[$0] != nil }
            guard !wanted.isEmpty, let hash = shape.hash(record, countsUnclocked: countsUnclocked) else { return }
            for range in wanted { sums[range]?.add(hash) }
        }
        return sums
    }

    /// Reads the rows of these ranges.
    package func forEach(_ entity: Entity, in ranges: Set<KeyRange>, _ body: (RowRecord) throws -> Void) throws {
        let levels = Set(ranges.map(\.level)).sorted()
        try forEach(entity) { record in
            let position = KeyRange.position(record.identity)
            guard levels.contains(where: { ranges.contains(KeyRange(position, level: $0)) }) else { return }
            try body(record)
        }
    }

    /// Returns the tables with changes that the node counts as received and can't apply yet (a future clock, an unknown
    /// column), and the ignored tables.
    package func tablesWithPendingChanges() throws -> Set<Int64> {
        var held = context.filters.ignored
        try DeferredChanges.forEachPayload(db) { payload in
            let transaction: DecodedTransaction
            do {
                transaction = try DecodedTransaction(payload)
            } catch is WireError {
                return
            }
            try transaction.forEachChange { change in
                for name in [change.entity] + change.formerEntities {
                    if let entity = context.catalog[name] { held.insert(entity.id) }
                }
            }
        }
        return held
    }
}

extension Applier {
    /// Returns everything that is known about one row.
    package func record(_ table: EntityTable, _ identity: StableID) throws -> RowRecord? {
        let pending = try pendingRows.load(table, identity)
        guard let found = try table.find(db, identity) else {
            if let pending { return RowRecord(identity, pending) }
            return try context.tombstones.find(db, table.entity.id, identity).map {
                RowRecord(identity: identity, clocks: RowClocks(deleted: $0), values: [:])
            }
        }
        var record = RowRecord(
            identity: identity, clocks: found.clocks,
            values: try portableValues(table, identity, table.read(db, found.address) ?? [:]),
            localID: found.address.row)
        if let pending { record.add(pending.values, at: pending.clocks) }
        return record
    }
}
