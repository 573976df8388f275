import GRDB
package import MartletCore
import MartletMerge
import MartletStore

/// Two groups of rows that exclude each other: one row of each group needs another row of its group, and wins a unique
/// key over a row that the other group can't do without. Either group could stay, so the outcome would depend on the
/// order of arrival. Therefore the group with the newer claim stays.
extension Applier {
    /// How many rows are read at most to find out whether one needs another.
    private static let mostNeeded = 1000

    private struct Placed {
        var table: EntityTable
        var rival: Rival
    }

    /// Brings in a group of rows if its first row has the newer claim.
    ///
    /// - Parameter members: a row, and the rows that it needs. All are pending, and assumed to be in place
    ///   (``assume(_:)``).
    /// - Returns: false if none came in.
    package func contest(_ members: [Member]) throws -> Bool {
        let first = members[0]
        guard first.reason == .missingTarget, let beaten = try rivals(of: first), !beaten.isEmpty,
            beaten.allSatisfy({
                $0.address != nil && wins(first.table, first.pendingRow.clocks, first.name.identity, over: $0)
            })
        else { return false }
        var winners: [Placed] = []
        for member in members.dropFirst() {
            guard let rivals = try rivals(of: member) else { return false }
            winners += rivals.filter { !wins(member.table, member.pendingRow.clocks, member.name.identity, over: $0) }
                .map { Placed(table: member.table, rival: $0) }
        }
        let newest = claim(first.table, first.pendingRow.clocks)
        guard !winners.isEmpty,
            try winners.allSatisfy({ winner in
                try claim(winner.table, winner.rival.clocks) < newest
                    && beaten.contains { try needs(winner, Placed(table: first.table, rival: $0)) }
            })
        else { return false }
        for rival in beaten {
            guard let found = try first.table.find(db, rival.identity) else { continue }
            let pendingRow = try evict(first.table, found, rival.identity)
            yieldCounts[RowIdentity(entity: first.table.entity.id, identity: rival.identity), default: 0] += 1
            try park(
                first.table, rival.identity, pendingRow, behind: first.name.identity,
                winning: first.pendingRow.clocks.newest)
        }
        // Rows that need the evicted ones leave before any row comes in: otherwise they would seem to have their
        // target.
        while let orphan = orphans.popLast() { try settle(orphan) }
        // Needed rows come first.
        try bringIn(members.reversed())
        return true
    }

    /// Returns the pending rows that wait for this one: they may outrank the row that it lost to.
    package func rowsWaiting(
        for identity: StableID, of table: EntityTable, _ pendingRow: PendingRow
    ) throws -> [RowIdentity] {
        // A row that lacks several others does not say which of them it waits for.
        var rows = try pendingRows.waiting(for: WaitKey.anything)
        rows += try pendingRows.waiting(for: WaitKey.target(table.entity.id, identity))
        for key in context.valueKeys.byTarget[table.entity.id] ?? [] {
            let values = key.targetValues(pendingRow.values, pendingRow.localID)
            if !values.contains(.null) { rows += try pendingRows.waiting(for: key.wait(for: values)) }
        }
        return rows
    }

    /// Returns true if a row is the other one, or can't be in its table without it.
    private func needs(_ row: Placed, _ other: Placed) throws -> Bool {
        guard let address = row.rival.address, let wanted = other.rival.address else { return false }
        var open = [(row.table, address)]
        var seen: [Int64: [RowAddress]] = [:]
        var count = 0
        while let (table, address) = open.popLast() {
            if table.entity.id == other.table.entity.id, address == wanted { return true }
            if seen[table.entity.id]?.contains(address) ?? false { continue }
            seen[table.entity.id, default: []].append(address)
            count += 1
            guard count < Self.mostNeeded, let values = try table.read(db, address) else { continue }
            for column in table.entity.columns {
                guard let name = column.reference, let target = context.catalog[name],
                    let key = values[column.slot].flatMap(column.referredRow),
                    try !table.entity.mayWait(column) || refusesNull(table, address, column.slot)
                else { continue }
                open.append((context.table(target), .key(key)))
            }
            for key in context.valueKeys.byEntity[table.entity.id] ?? [] {
                let claimed = key.slots.map { values[$0] ?? .null }
                guard !claimed.contains(.null) else { continue }
                if let column = key.yielding, try !refusesNull(table, address, column.slot) { continue }
                let target = context.table(key.target)
                open += try rows(target, where: key.isTarget, claimed).map { (target, $0.1.address) }
            }
        }
        return false
    }

    /// Returns true if a constraint of the table keeps a column that may be null from being null in this row.
    private func refusesNull(_ table: EntityTable, _ address: RowAddress, _ slot: Int) throws -> Bool {
        var isRefused = false
        func look() throws {
            do {
                try table.update(db, address, [(slot, .null)])
            } catch let error as StoreError where error.refusesRow {
                isRefused = !error.isUniqueKey
            }
        }
        try db.inSavepoint {
            if let derived = table.derived { try derived.without(look) } else { try look() }
            return .rollback
        }
        return isRefused
    }
}
