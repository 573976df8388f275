import Foundation
package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore

/// The reason why a change is pending.
public enum ParkReason: String, Sendable, Codable, CaseIterable {
    /// An update arrived before its row.
    case missingRow
    /// The row refers to a missing row, and the column may not be null.
    case missingTarget
    /// Another row holds a unique key of this one.
    case unique
    /// The table refuses the row (`NOT NULL`, `CHECK`).
    case constraint
    /// An update of a row that was deleted. It applies if the row is inserted again before the time of the update.
    case deleted
    /// The change names a table that is not tracked here, or a column that doesn't exist here: an older schema.
    case unknownSchema
    /// A filter of this node rejects it.
    case filtered
    /// The clock of the change is further ahead than the allowed skew.
    case futureClock
}

extension ParkReason {
    /// True for reasons that somebody should know of. Updates of deleted rows, and rows that a filter rejects, wait for
    /// nothing that would come by itself.
    package var isWaiting: Bool { self != .deleted && self != .filtered }
}

/// What is known of a row that is not in its table: its clocks, and the values that belong to them.
package struct PendingRow {
    package var id: Int64?
    package var clocks: RowClocks
    package var values: [Int: Value]
    package var localID: Int64?

    /// Returns the values in the order of the table's columns.
    package func values(in table: EntityTable) -> [(slot: Int, value: Value)] {
        table.slots.compactMap { slot in values[slot].map { (slot, $0) } }
    }

    /// Drops values that a delete has overruled, also if the row was inserted again since.
    package mutating func dropOverruled() {
        values = values.filter { clocks.stamp(of: $0.key) != nil }
    }
}

/// The number of pending rows. While there are none, nothing need be looked up for them. Only ``PendingRows`` changes
/// it.
package final class PendingRowCount {
    package fileprivate(set) var count: Int64

    init(_ db: Database) throws {
        count = try Int64.fetchOne(db, sql: "SELECT count(*) FROM _martlet_shadows") ?? 0
    }
}

/// Stores pending rows, and finds them again.
package struct PendingRows {
    private let db: Database
    private let context: TableContext
    private let total: PendingRowCount

    package init(_ db: Database, _ context: TableContext, _ total: PendingRowCount) {
        self.db = db
        self.context = context
        self.total = total
    }

    package func load(_ table: EntityTable, _ identity: StableID) throws -> PendingRow? {
        guard total.count > 0 else { return nil }
        let find = try context.statement(
            db, "SELECT id, hlc, node, local_id FROM _martlet_shadows WHERE entity = ?1 AND ident = ?2")
        find.bind(1, table.entity.id)
        find.bind(2, blob: identity.bytes)
        guard
            var pendingRow = try find.first({ row in
                PendingRow(
                    id: row.integer(0),
                    clocks: RowClocks(inserted: row.isNull(1) ? nil : context.nodes.stamp(row, 1)), values: [:],
                    localID: row.optionalInteger(3))
            }), let id = pendingRow.id
        else { return nil }
        let columns = try context.statement(
            db, "SELECT slot, value, reference, hlc, node FROM _martlet_shadow_columns WHERE shadow = ?1")
        columns.bind(1, id)
        var exceptions: ColumnStamps = [:]
        defer { columns.reset() }
        while try columns.step() {
            let slot = Int(columns.integer(0))
            guard table.columnsBySlot[slot] != nil else { continue }
            let value = columns.integer(2) == 0 ? columns.value(1) : try StableID(bytes: columns.blob(1)).values().first
            pendingRow.values[slot] = value ?? .null
            exceptions[slot] = context.nodes.stamp(columns, 3)
        }
        let inserted = pendingRow.clocks.inserted
        let unset = inserted == nil ? [] : table.slots.filter { exceptions[$0] == nil }
        exceptions.removeAll { $0.stamp == inserted }
        for slot in unset { exceptions[slot] = .zero }
        let deleted = try context.tombstones.find(db, table.entity.id, identity)
        pendingRow.clocks = RowClocks(inserted: inserted, deleted: deleted, exceptions: exceptions)
        // A local delete may have overruled some of them meanwhile.
        pendingRow.dropOverruled()
        return pendingRow
    }

    package func save(
        _ table: EntityTable, _ identity: StableID, _ pendingRow: PendingRow, _ reason: ParkReason,
        detail: String? = nil,
        wait: [UInt8]? = nil
    ) throws {
        if let deleted = pendingRow.clocks.deleted {
            try context.tombstones.raise(db, table.entity.id, identity, deleted)
        }
        let known = try context.statement(db, "SELECT id, since FROM _martlet_shadows WHERE entity = ?1 AND ident = ?2")
        known.bind(1, table.entity.id)
        known.bind(2, blob: identity.bytes)
        let old = try known.first { ($0.integer(0), $0.integer(1)) }
        if let old { try removeColumns(old.0) }
        let save = try context.statement(
            db,
            """
            INSERT OR REPLACE INTO _martlet_shadows(id, entity, ident, reason, detail, wait, hlc, node, local_id, since)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """)
        save.bind(1, optional: old?.0)
        save.bind(2, table.entity.id)
        save.bind(3, blob: identity.bytes)
        save.bind(4, text: reason.rawValue)
        save.bind(5, optional: detail)
        if let wait { save.bind(6, blob: wait) } else { save.bindNull(6) }
        save.bind(7, optional: pendingRow.clocks.inserted.map { $0.time.stored })
        save.bind(8, optional: try pendingRow.clocks.inserted.map { try context.nodes.number(db, $0.node) })
        save.bind(9, optional: pendingRow.localID)
        save.bind(10, old?.1 ?? context.now())
        try save.run()
        let id = old?.0 ?? db.lastInsertedRowID
        var kept = pendingRow
        kept.dropOverruled()
        try saveColumns(id, kept)
        if old == nil { total.count += 1 }
    }

    private func saveColumns(_ id: Int64, _ pendingRow: PendingRow) throws {
        let column = try context.statement(
            db,
            """
            INSERT INTO _martlet_shadow_columns(shadow, slot, value, reference, hlc, node)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """)
        for (slot, value) in pendingRow.values {
            guard let stamp = pendingRow.clocks.exceptions[slot] ?? pendingRow.clocks.inserted else { continue }
            column.bind(1, id)
            column.bind(2, Int64(slot))
            column.bind(3, kept: value)
            column.bind(5, stamp.time.stored)
            column.bind(6, try context.nodes.number(db, stamp.node))
            try column.run()
        }
    }

    /// Gives a pending row other stamps. Its reason and its age stay.
    package func restamp(_ pendingRow: PendingRow) throws {
        guard let id = pendingRow.id else { return }
        if let inserted = pendingRow.clocks.inserted {
            let row = try context.statement(db, "UPDATE _martlet_shadows SET hlc = ?2, node = ?3 WHERE id = ?1")
            row.bind(1, id)
            row.bind(2, inserted.time.stored)
            row.bind(3, try context.nodes.number(db, inserted.node))
            try row.run()
        }
        try removeColumns(id)
        try saveColumns(id, pendingRow)
    }

    /// Gives a pending row another stamp of its insert. The stamps of its columns stay.
    package func restampInsert(_ table: EntityTable, _ identity: StableID, _ stamp: Stamp) throws {
        try db.execute(
            sql: "UPDATE _martlet_shadows SET hlc = ?, node = ? WHERE entity = ? AND ident = ?",
            arguments: [
                stamp.time.stored, try context.nodes.number(db, stamp.node), table.entity.id,
                Data(identity.bytes),
            ])
    }

    /// Gives a column of a pending row another stamp.
    package func restamp(_ table: EntityTable, _ identity: StableID, slot: Int, _ stamp: Stamp) throws {
        try db.execute(
            sql: """
                UPDATE _martlet_shadow_columns SET hlc = ?, node = ? WHERE slot = ?
                AND shadow = (SELECT id FROM _martlet_shadows WHERE entity = ? AND ident = ?)
                """,
            arguments: [
                stamp.time.stored, try context.nodes.number(db, stamp.node), slot,
                table.entity.id, Data(identity.bytes),
            ])
    }

    /// Deletes a pending row for a person, who gives its number.
    static func discard(_ db: Database, _ id: Int64?) throws {
        try db.execute(sql: "DELETE FROM _martlet_shadow_columns WHERE shadow = ?", arguments: [id])
        try db.execute(sql: "DELETE FROM _martlet_shadows WHERE id = ?", arguments: [id])
    }

    package func remove(_ pendingRow: PendingRow?) throws {
        guard let id = pendingRow?.id else { return }
        try removeColumns(id)
        let remove = try context.statement(db, "DELETE FROM _martlet_shadows WHERE id = ?1")
        remove.bind(1, id)
        try remove.run()
        total.count -= Int64(remove.changes)
    }

    package func reason(_ pendingRow: PendingRow) throws -> ParkReason? {
        guard let id = pendingRow.id else { return nil }
        let find = try context.statement(db, "SELECT reason FROM _martlet_shadows WHERE id = ?1")
        find.bind(1, id)
        return try find.first { ParkReason(rawValue: $0.text(0)) } ?? nil
    }

    /// Returns when the row first became pending.
    package func since(_ pendingRow: PendingRow) throws -> Int64? {
        guard let id = pendingRow.id else { return nil }
        let find = try context.statement(db, "SELECT since FROM _martlet_shadows WHERE id = ?1")
        find.bind(1, id)
        return try find.first { $0.integer(0) }
    }

    /// If a retried row is pending again, gives it the number and the age that it had, unless the number is taken.
    package func restore(_ name: RowIdentity, id: Int64, since: Int64) throws {
        let known = try context.statement(db, "SELECT id FROM _martlet_shadows WHERE entity = ?1 AND ident = ?2")
        known.bind(1, name.entity)
        known.bind(2, blob: name.identity.bytes)
        guard let new = try known.first({ $0.integer(0) }) else { return }
        let age = try context.statement(db, "UPDATE _martlet_shadows SET since = ?2 WHERE id = ?1")
        age.bind(1, new)
        age.bind(2, since)
        try age.run()
        guard new != id else { return }
        let move = try context.statement(db, "UPDATE OR IGNORE _martlet_shadows SET id = ?2 WHERE id = ?1")
        move.bind(1, new)
        move.bind(2, id)
        try move.run()
        guard move.changes == 1 else { return }
        let columns = try context.statement(db, "UPDATE _martlet_shadow_columns SET shadow = ?2 WHERE shadow = ?1")
        columns.bind(1, new)
        columns.bind(2, id)
        try columns.run()
    }

    private func removeColumns(_ id: Int64) throws {
        let remove = try context.statement(db, "DELETE FROM _martlet_shadow_columns WHERE shadow = ?1")
        remove.bind(1, id)
        try remove.run()
    }

    /// Returns the rows that wait for this key.
    package func waiting(for key: [UInt8]) throws -> [RowIdentity] {
        try names("wait = ?1") { $0.bind(1, blob: key) }
    }

    /// Returns all pending rows.
    package func all() throws -> [RowIdentity] {
        try names("1") { _ in }
    }

    /// Passes the pending rows of a table that are not in it.
    package func forEachAbsent(from table: EntityTable, _ body: (RowRecord) throws -> Void) throws {
        for name in try names("entity = ?1", { $0.bind(1, table.entity.id) }) where !name.identity.hasNoIdentity {
            guard try table.find(db, name.identity) == nil, let pendingRow = try load(table, name.identity) else {
                continue
            }
            try body(RowRecord(name.identity, pendingRow))
        }
    }

    /// Returns the entity's rows that are pending for this reason.
    package func waiting(_ entity: Int64, _ reason: ParkReason) throws -> [RowIdentity] {
        try names("entity = ?1 AND reason = ?2") {
            $0.bind(1, entity)
            $0.bind(2, text: reason.rawValue)
        }
    }

    private func names(_ condition: String, _ bind: (PreparedStatement) -> Void) throws -> [RowIdentity] {
        let find = try context.statement(
            db, "SELECT entity, ident FROM _martlet_shadows WHERE \(condition) ORDER BY id")
        bind(find)
        return try RowIdentity.all(find)
    }
}

extension PreparedStatement {
    /// Binds a pending value, and after it whether the value is encoded: references, which no column of SQLite can
    /// hold, and text that a UTF-16 file would change.
    package func bind(_ index: Int32, kept value: Value) {
        let isReference = if case .reference = value { true } else { false }
        if isReference || !TextEncoding.utf16.holds(value) {
            bind(index, blob: StableID(values: [value]).bytes)
            bind(index + 1, 1)
        } else {
            bind(index, value)
            bind(index + 1, 0)
        }
    }
}
