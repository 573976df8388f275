package import GRDB

/// A row of the log, decoded with the catalog.
package struct LogChange {
    package var id: Int64
    package var entity: Entity
    package var row: Int64?
    package var kind: ChangeKind
    /// Milliseconds since 1970.
    package var time: Int64
    /// The columns that the change carries, with their values in this file. An insert, and an update that changes the
    /// row's identity, carry all columns. Another update carries the changed columns and the identity. A delete carries
    /// the preserved columns.
    package var values: [(column: EntityColumn, value: Value)]
    /// The state before an update: the integer key, and the kept values.
    package var before: (row: Int64?, values: [(column: EntityColumn, value: Value)])?
    /// The columns that an update changed.
    fileprivate var mask: ChangeMask?

    package func value(of column: EntityColumn) -> Value? {
        values.first { $0.column.slot == column.slot }?.value
    }

    /// The size of its texts and blobs, in bytes.
    package var byteCount: Int {
        values.reduce(0) { sum, entry in
            switch entry.value {
            case .text(let text): sum + text.utf8.count
            case .blob(let bytes), .rawText(let bytes): sum + bytes.count
            default: sum
            }
        }
    }
}

/// A change in the log of which no value is decoded yet. Valid until the reader goes on.
///
/// It was logged with the present rules of its table and with all of its columns, and no old values belong to it.
package struct PlainLogRow {
    package let id: Int64
    package let entity: Int64
    package let kind: ChangeKind
    /// Milliseconds since 1970.
    package let time: Int64
    fileprivate let select: PreparedStatement

    package var hasKey: Bool { !select.isNull(LogReader.keyColumn) }

    package func value(slot: Int) -> BorrowedValue { select.borrowed(LogReader.firstSlot + Int32(slot - 1)) }

    /// The columns that an update changed.
    package var mask: ChangeMask { ChangeMask(select.value(LogReader.maskColumn)) }
}

/// Reads changes from the log, in order. Skips changes of entities that are no longer tracked.
///
/// Confined to its connection.
package final class LogReader {
    private let select: PreparedStatement
    fileprivate static let keyColumn: Int32 = 2
    fileprivate static let maskColumn: Int32 = 4
    fileprivate static let firstSlot: Int32 = 6
    private let plans: [Int64: Plan]
    /// The former rules of entities, oldest first.
    private let former: [Int64: [(until: Int64, plan: Plan)]]
    /// The row that the statement stands on: the last one that was passed, or the one after it.
    private var place: (id: Int64, isPassed: Bool)?

    /// The properties shared by all changes of an entity.
    private final class Plan {
        let entity: Entity
        let identity: [Int]
        /// Changes from this ID on have all columns.
        let since: Int64
        /// True if one rule has always applied, and deletes carry only the identity.
        let isPlain: Bool

        init(_ entity: Entity) {
            self.entity = entity
            identity = entity.identityColumns.map(\.slot)
            since = entity.columns.map(\.since).max() ?? 0
            isPlain = entity.formerRules.isEmpty && !entity.keepsOldValues
        }
    }

    package init(_ db: Database, catalog: Catalog) throws {
        plans = Dictionary(uniqueKeysWithValues: catalog.entities.map { ($0.id, Plan($0)) })
        former = Dictionary(
            uniqueKeysWithValues: catalog.entities.filter { !$0.formerRules.isEmpty }.map { entity in
                (entity.id, entity.formerRules.map { ($0.until, Plan(entity.with($0))) })
            })
        let slots = catalog.entities.flatMap { ($0.columns + $0.droppedColumns).map(\.slot) }.max() ?? 0
        let columns = slots == 0 ? "" : (1...slots).map { ", c\($0)" }.joined()
        select = try PreparedStatement(
            db,
            """
            SELECT id, e, r, k, m, t\(columns) FROM \(InternalName.log) WHERE id >= ?1 AND id < ?2 AND e <> 0
            ORDER BY id
            """)
    }

    /// Moves to the first row from an ID on, and returns its ID. Usually, that is the next row.
    ///
    /// - Parameter end: where the statement ends if it begins here.
    private func move(to first: Int64, endingAt end: Int64) throws -> Int64? {
        if let place, place.isPassed, place.id < first, try !step() { return nil }
        if let place, !place.isPassed, place.id >= first { return place.id }
        select.reset()
        select.bind(1, first)
        select.bind(2, end)
        return try step() ? place?.id : nil
    }

    private func step() throws -> Bool {
        // Nil also if the statement fails.
        place = nil
        guard try select.step() else { return false }
        place = (select.integer(0), false)
        return true
    }

    /// Ends a read that has kept its place.
    package func leave() {
        select.reset()
        place = nil
    }

    /// Calls `body` with each change whose ID is in the range.
    package func forEach(from first: Int64, to end: Int64, _ body: (LogChange) throws -> Void) throws {
        try forEachWhile(from: first, to: end) { change in
            try body(change)
            return true
        }
    }

    /// Calls `body` with each change whose ID is in the range, until `body` returns false.
    ///
    /// - Parameters:
    ///   - keepsPlace: true for ranges that ascend from call to call: finding the place again takes as long as reading
    ///     some changes. Call ``leave()`` after the last one, since the statement stays open until then.
    ///   - undecoded: is called first with a change that is simple enough. Returns nil if `body` is to be called, too;
    ///     otherwise whether to go on.
    package func forEachWhile(
        from first: Int64, to end: Int64, keepsPlace: Bool = false,
        undecoded: (PlainLogRow) throws -> Bool? = { _ in nil }, _ body: (LogChange) throws -> Bool
    ) throws {
        if !keepsPlace { leave() }
        defer { if !keepsPlace { leave() } }
        var before: (row: Int64?, values: [(column: EntityColumn, value: Value)])?
        var next = first
        while next < end, let id = try move(to: next, endingAt: keepsPlace ? .max : end), id < end {
            place = (id, true)
            next = id + 1
            let number = select.integer(1)
            guard let present = plans[number] else { continue }
            if before == nil, present.isPlain, present.since <= id,
                let kind = ChangeKind(code: select.integer(3)),
                let goesOn = try undecoded(
                    PlainLogRow(id: id, entity: number, kind: kind, time: select.integer(5), select: select))
            {
                if goesOn { continue }
                return
            }
            let plan = former.isEmpty ? present : former[present.entity.id]?.first { id < $0.until }?.plan ?? present
            let entity = plan.entity
            let code = select.integer(3)
            let row = select.optionalInteger(Self.keyColumn)
            let columns = plan.since <= id ? entity.columns : entity.columns.filter { $0.since <= id }
            func value(_ column: EntityColumn) -> Value { select.value(Self.firstSlot + Int32(column.slot - 1)) }
            let identity = plan.identity
            if code == ChangeKind.Mark.before {
                let kept = entity.keepsOldValues ? columns : columns.filter { identity.contains($0.slot) }
                before = (row, kept.map { ($0, value($0)) })
                continue
            }
            guard let kind = ChangeKind(code: code) else { continue }
            let mask = kind == .update ? ChangeMask(select.value(Self.maskColumn)) : nil
            let isRenamed =
                before?.values.contains { identity.contains($0.column.slot) && $0.value != value($0.column) } ?? false
            let here =
                kind == .insert
                ? columns
                : columns.filter { column in
                    switch kind {
                    case .insert: true
                    case .update:
                        isRenamed || mask?.contains(slot: column.slot) == true || identity.contains(column.slot)
                    case .delete: entity.keepsOldValues || identity.contains(column.slot)
                    }
                }
            // The log holds NULL for values that did not change; drop them.
            before?.values.removeAll {
                mask?.contains(slot: $0.column.slot) != true && !identity.contains($0.column.slot)
            }
            let continues = try body(
                LogChange(
                    id: id, entity: entity, row: row, kind: kind, time: select.integer(5),
                    values: here.map { ($0, value($0)) }, before: kind == .update ? before : nil, mask: mask))
            guard continues else { return }
            before = nil
        }
    }
}

extension LogChange {
    /// Returns whether the update changed the column. An update also carries columns that only identify the row.
    package func isChanged(_ column: EntityColumn) -> Bool {
        guard kind == .update else { return true }
        return mask?.contains(slot: column.slot) == true
    }

    /// Whether the update gives a row a value in each of its identity columns, at least one of which was NULL. Such an
    /// update carries all columns.
    package var givesName: Bool {
        let identity = entity.identityColumns
        guard kind == .update, let before, !identity.isEmpty else { return false }
        return identity.allSatisfy { value(of: $0).map { !$0.isNull } ?? false }
            && before.values.contains { old in old.value.isNull && identity.contains { $0.slot == old.column.slot } }
    }
}
