package import MartletCore
package import MartletMerge
import MartletStore
package import MartletWire

extension Applier {
    /// Journals local values that the change overrules, and that its author had not seen.
    package func journalOverruled(_ change: RemoteChange, _ won: [RemoteColumn], _ found: EntityTable.Found) throws {
        try journalOverruled(change, won, of: found.clocks) { try values(of: change, found) }
    }

    private func values(of change: RemoteChange, _ found: EntityTable.Found) throws -> [Int: Value] {
        try portableValues(change.table, change.identity, change.table.read(db, found.address) ?? [:])
    }

    /// - Parameter read: reads the row's values. Called at most once, if there is something to journal.
    private func journalOverruled(
        _ change: RemoteChange, _ won: [RemoteColumn], of clocks: RowClocks, _ read: () throws -> [Int: Value]
    ) throws {
        var values: [Int: Value]?
        for column in won {
            guard let local = clocks.stamp(of: column.slot), !change.hasSeen(local, replaces: column.replaces)
            else { continue }
            if values == nil { values = try read() }
            guard let value = values?[column.slot], value != column.value else { continue }
            try journal.record(
                .attribute, change.table, change.identity, slot: column.slot, value: value, stamp: local,
                winner: change.stamp(of: column.slot))
        }
    }

    /// The same for a pending row.
    package func journalOverruled(
        _ change: RemoteChange, _ outcome: RowClocks.Outcome, _ pending: PendingRow, merged: RowClocks
    ) throws {
        // Also for values that were set after a delete, if the change inserts the row again.
        try journalLost(change, outcome.lost, over: pending.clocks) { pending.values }
        guard pending.clocks.isAlive else { return }
        let won = change.columns.filter { outcome.won.contains($0.slot) }
        try journalOverruled(change, won, of: pending.clocks) { pending.values }
        // A snapshot may include a delete.
        if let deleted = merged.deleted, deleted != pending.clocks.deleted {
            try journalDeletedValues(change, pending, by: deleted)
        }
    }

    /// Journals values of the change that a newer value overrules, if that one was written on this node without knowing
    /// of them.
    ///
    /// A newer value from a third node may have been written in full knowledge of this one, and only have arrived
    /// first. If it is a conflict, its author and the author of this change each record it.
    package func journalLost(_ change: RemoteChange, _ lost: [Int], _ found: EntityTable.Found) throws {
        try journalLost(change, lost, over: found.clocks) { try values(of: change, found) }
    }

    /// - Parameter read: reads the row's values. Called at most once, if a value was lost.
    private func journalLost(
        _ change: RemoteChange, _ lost: [Int], over clocks: RowClocks, _ read: () throws -> [Int: Value]
    ) throws {
        // The authors of newer values knew most of what a snapshot brings.
        guard change.state == nil else { return }
        var values: [Int: Value]?
        for column in change.columns where lost.contains(column.slot) {
            // An author knows its own earlier values. They can arrive again, under the node's new ID.
            guard let winner = clocks.stamp(of: column.slot) ?? clocks.deleted, winner.node == context.node,
                winner.node != change.stamp.node
            else { continue }
            if clocks.stamp(of: column.slot) != nil {
                if values == nil { values = try read() }
                // Two authors who wrote the same value agree.
                guard values?[column.slot] != column.value else { continue }
            }
            try journal.record(
                .attribute, change.table, change.identity, slot: column.slot, value: column.value, stamp: change.stamp,
                winner: winner)
        }
    }

    /// Journals an update of a deleted row.
    package func journalDeleted(_ change: RemoteChange, _ slots: [Int], by deleted: Stamp) throws {
        guard deleted.node != change.stamp.node else { return }
        for column in change.columns where slots.contains(column.slot) {
            try journal.record(
                .deleted, change.table, change.identity, slot: column.slot, value: column.value, stamp: change.stamp,
                winner: deleted)
        }
    }

    /// Settles the pending changes of a row that was deleted here: the delete overrules them like values in the table,
    /// and nothing waits any more.
    package func settle(_ pending: PendingRow, of table: EntityTable, _ identity: StableID, deletedAt stamp: Stamp)
        throws
    {
        for (slot, value) in pending.values.sorted(by: { $0.key < $1.key }) {
            guard let set = pending.clocks.stamp(of: slot), set < stamp, set.node != context.node else { continue }
            try journal.record(
                .deleted, table, identity, slot: slot, value: value, stamp: set, winner: stamp)
        }
        var rest = pending
        _ = rest.clocks.delete(at: stamp)
        try bury(table, identity, rest)
    }

    /// Journals local values that the author of the delete had not seen.
    package func journalDeletedValues(_ change: RemoteChange, _ found: EntityTable.Found) throws {
        guard change.state != nil || !change.hasSeenAll(of: found.clocks) else { return }
        let values = try values(of: change, found)
        for slot in change.table.slots {
            guard let stamp = found.clocks.stamp(of: slot), !change.hasSeen(stamp, replaces: change.replaces)
            else { continue }
            try journal.record(
                .deleted, change.table, change.identity, slot: slot, value: values[slot] ?? .null, stamp: stamp,
                winner: change.stamp)
        }
    }

    /// The same for a pending row.
    package func journalDeletedValues(_ change: RemoteChange, _ pending: PendingRow, by deleted: Stamp? = nil) throws {
        guard pending.clocks.isAlive else { return }
        let deleted = deleted ?? change.stamp
        for (slot, value) in pending.values.sorted(by: { $0.key < $1.key }) {
            guard let stamp = pending.clocks.stamp(of: slot), stamp < deleted,
                !change.hasSeen(stamp, replaces: change.replaces)
            else { continue }
            try journal.record(
                .deleted, change.table, change.identity, slot: slot, value: value, stamp: stamp, winner: deleted)
        }
    }
}
