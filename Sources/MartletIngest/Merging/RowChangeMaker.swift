import Foundation
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// Makes changes of a table from the events of a source. On the engine's connection, in the SQLite transaction that
/// merges the changes before.
struct RowChangeMaker {
    let target: TargetTable
    let source: Source
    let applier: Applier

    /// Returns the change of a row that an event makes. Nil if it changes nothing.
    ///
    /// - Parameters:
    ///   - identity: the values that identify the row.
    ///   - time: the time of the change, which becomes its step.
    func change(_ event: SourceEvent, _ identity: [Value], at time: SourceClock.Time) throws -> WireChange? {
        let table = target.table
        let known = try applier.record(table, StableID(values: identity))
        var change = WireChange()
        change.entity = target.entity.name
        change.formerEntities = target.entity.formerNames
        change.identity = try identity.map(WireValue.init)
        change.clockStep = time.stamp.rawValue
        var after = try target.values(event.after ?? [:])
        for (column, value) in zip(table.identityColumns, identity) { after.known[column.slot] = value }
        switch RowRule(event.operation, known?.clocks, isLate: time.isLate) {
        case .nothing: return nil
        case .delete:
            change.kind = .delete
            change.tombstone = try columns(table.identityColumns.map { ($0, after.known[$0.slot] ?? .null) })
            return change
        case .insert:
            change.kind = .insert
            change.columns = try columns(after) { _ in true }
            return change
        case .update:
            let before = try event.before.map(target.values)
            let changed = changedSlots(before, after, known)
            let unknown = changedNames(before, after)
            change.columns = try columns(
                TargetTable.Values(known: after.known, unknown: after.unknown.filter { unknown.contains($0.key) }),
                changed.contains)
        case .refresh:
            change.columns = try columns(after) { slot in isStale(slot, after.known[slot], known) }
        }
        change.kind = .update
        return change.columns.isEmpty ? nil : change
    }

    /// Returns the columns that the source has changed. Columns that form one register change together.
    ///
    /// Those are the columns that differ between the rows before and after, and those that still have an older value of
    /// the source: the record that changed them is missing. If the row before is not there as a whole, each column
    /// counts as changed that a device has set, or that has another value.
    private func changedSlots(
        _ before: TargetTable.Values?, _ after: TargetTable.Values, _ known: RowRecord?
    ) -> Set<Int> {
        let others = Set(after.known.keys).subtracting(target.table.identityColumns.map(\.slot))
        let changed: Set<Int>
        if let before, isWhole(before, after) {
            changed = others.filter {
                before.known[$0] != after.known[$0] || isStale($0, after.known[$0], known)
            }
        } else {
            changed = others.filter { known?.values[$0] != after.known[$0] || !isOfSource($0, known) }
        }
        return changed.reduce(into: changed) { slots, slot in
            guard let column = target.table.columnsBySlot[slot] else { return }
            slots.formUnion(target.entity.register(of: column).map(\.slot).filter(others.contains))
        }
    }

    private func changedNames(_ before: TargetTable.Values?, _ after: TargetTable.Values) -> Set<String> {
        let names = Set(after.unknown.keys)
        guard let before, isWhole(before, after) else { return names }
        return names.filter { before.unknown[$0] != after.unknown[$0] }
    }

    private func isWhole(_ before: TargetTable.Values, _ after: TargetTable.Values) -> Bool {
        after.known.keys.allSatisfy { before.known[$0] != nil }
            && after.unknown.keys.allSatisfy { before.unknown[$0] != nil }
    }

    /// Returns true for a column whose value differs from the source's, and was not set by a device.
    private func isStale(_ slot: Int, _ value: Value?, _ known: RowRecord?) -> Bool {
        guard !target.table.isIdentity(slot), let known, let value, known.values[slot] != value else { return false }
        return isOfSource(slot, known)
    }

    /// Returns true for a column that no device has set.
    private func isOfSource(_ slot: Int, _ known: RowRecord?) -> Bool {
        known?.clocks.stamp(of: slot).map { $0 == .zero || source.siblings.contains($0.node) } ?? true
    }

    private func columns(_ values: TargetTable.Values, _ isTaken: (Int) -> Bool) throws -> [WireColumn] {
        let known = target.entity.columns.compactMap { column in
            isTaken(column.slot) ? values.known[column.slot].map { (column, $0) } : nil
        }
        return try columns(known)
            + values.unknown.sorted { $0.key < $1.key }.map { name, value in
                var column = WireColumn()
                column.name = name
                column.value = try WireValue(value)
                return column
            }
    }

    private func columns(_ values: [(EntityColumn, Value)]) throws -> [WireColumn] {
        try values.map { column, value in
            var message = WireColumn()
            message.name = column.name
            message.value = try WireValue(value)
            message.formerNames = target.entity.names(column).formerNames
            return message
        }
    }
}
