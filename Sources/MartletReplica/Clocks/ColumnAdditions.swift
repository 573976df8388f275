package import GRDB
package import MartletCore
package import MartletMerge
import MartletStore

/// When columns were added to tables that already had rows, on this node's clock.
///
/// The clock of a row's insert stands for every column without a clock of its own. For a column that was added later it
/// must not: the insert did not set it, and another node may have inserted the same row with it. So a row that was
/// inserted before the column was added has the lowest clock for it, unless a clock is stored.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class ColumnAdditions {
    private struct Addition {
        var slot: Int
        /// Every row with clocks that was inserted up to this time was inserted without the column, or has its own
        /// clock for it. The greatest time while older changes may still have to get their clocks.
        var time: HybridTime
        var since: Int64
    }

    private static let undecided = HybridTime(rawValue: .max)

    private var byEntity: [Int64: [Addition]] = [:]
    /// The first change of the log after a column whose time is not decided yet.
    private var nextUndecided: Int64?

    package init(_ db: Database) throws {
        let read = try PreparedStatement(
            db,
            "SELECT entity, slot, since, added FROM \(InternalName.columns) WHERE added IS NOT 0 AND dropped IS NULL")
        while try read.step() {
            let time = read.optionalInteger(3).map { HybridTime(stored: $0) }
            byEntity[read.integer(0), default: []].append(
                Addition(slot: Int(read.integer(1)), time: time ?? Self.undecided, since: read.integer(2)))
        }
        findNextUndecided()
    }

    private func findNextUndecided() {
        nextUndecided = byEntity.values.joined().filter { $0.time == Self.undecided }.map(\.since).min()
    }

    /// Decides the times of columns that were added before this change: the last clock reading, since every earlier
    /// change has its clock by now.
    package func decide(_ db: Database, before change: Int64, _ clock: HybridTime) throws {
        guard let nextUndecided, nextUndecided <= change else { return }
        for (entity, var additions) in byEntity {
            for index in additions.indices
            where additions[index].time == Self.undecided && additions[index].since <= change {
                additions[index].time = clock
                try db.execute(
                    sql: "UPDATE \(InternalName.columns) SET added = ? WHERE entity = ? AND slot = ?",
                    arguments: [clock.stored, entity, additions[index].slot])
            }
            byEntity[entity] = additions
        }
        findNextUndecided()
    }

    /// Returns true if the clock of an insert stands for all columns of its row.
    package func isAfterAll(_ entity: Int64, _ time: HybridTime) -> Bool {
        guard !byEntity.isEmpty, let additions = byEntity[entity] else { return true }
        return additions.allSatisfy { $0.time < time }
    }

    /// Completes a row's stored exceptions with those that follow from added columns.
    package func complete(_ exceptions: inout ColumnStamps, _ entity: Int64, _ inserted: Stamp) {
        guard !byEntity.isEmpty, inserted != .zero, let additions = byEntity[entity] else { return }
        for addition in additions where inserted.time <= addition.time && exceptions[addition.slot] == nil {
            exceptions[addition.slot] = .zero
        }
    }

    /// Returns the exceptions of a row that must be stored.
    package func reduced(_ clocks: RowClocks, _ entity: Int64) -> ColumnStamps {
        var exceptions = clocks.exceptions
        guard !byEntity.isEmpty, let inserted = clocks.inserted, let additions = byEntity[entity] else {
            return exceptions
        }
        for addition in additions where inserted.time <= addition.time {
            let stamp = exceptions[addition.slot] ?? inserted
            exceptions[addition.slot] = stamp == .zero ? nil : stamp
        }
        return exceptions
    }
}
