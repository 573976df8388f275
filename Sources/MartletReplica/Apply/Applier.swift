import Foundation
package import GRDB
package import MartletCore
import MartletMerge
import MartletStore
import MartletWire

/// Merges the changes of one remote transaction into the tables, with clocks and history.
///
/// One value for one transaction, on the engine's connection, inside the caller's SQLite transaction. What can't be
/// applied yet becomes a pending change with its reason; nothing is dropped.
package final class Applier {
    package let db: Database
    package let context: ReplicaContext
    package let pendingRows: PendingRows
    package let journal: ConflictJournal
    /// Rows that left their table, and that others may refer to.
    package var orphans = Orphans()
    /// Rows that lost a unique key to another row. It is a conflict if they are still pending when everything is
    /// settled.
    package var yielded: [Yielded] = []
    /// Wait keys that were satisfied by something other than the arrival of a row with an ID.
    package var wakes: [[UInt8]] = []
    /// Rows that wait for a target that they can't do without. The target may in turn wait for them.
    package var blocked: [RowIdentity] = []
    /// Rows that their tables refused in this transaction while references were null.
    package var refused: Set<RowIdentity> = []
    /// How often each cycle of rows was inserted.
    package var cycleAttempts: [RowIdentity: Int] = [:]
    package var assumed = Assumed()
    /// Rows without an ID that were put back into their tables, by rowid.
    package var returned: [RowWithoutIdentity: StableID] = [:]
    /// How often each row gave way to another row with its unique key in this transaction.
    ///
    /// The winner may refer to the row that it displaces. It then releases the key until that row is back, which would
    /// displace it again, and so on without end. See ``mayReturn(_:)``.
    package var yieldCounts: [RowIdentity: Int] = [:]

    package struct Yielded {
        package var table: EntityTable
        package var identity: StableID
        package var stamp: Stamp
        package var winner: Stamp
    }

    package init(_ db: Database, _ context: ReplicaContext) {
        self.db = db
        self.context = context
        pendingRows = PendingRows(db: db, context: context)
        journal = ConflictJournal(db: db, context: context.tables)
    }

    /// Changes whose references have no target yet: they are retried after the others.
    package var waiting: [RemoteChange] = []
    private var hasApplied = false
    /// The most waiting changes that are held in memory. Further ones go into the store, with what they wait for.
    private static let maxWaiting = 10_000
    /// With no more waiting changes than this, a round is worthwhile if it applies one of them.
    private static let fewWaiting = 8

    /// Applies the next change of the transaction.
    package func add(_ change: RemoteChange) throws {
        if try apply(change, isFinal: waiting.count >= Self.maxWaiting) {
            hasApplied = true
        } else {
            waiting.append(change)
        }
        guard context.news.isCrowded else { return }
        // Whatever begins to wait from here on doesn't wait for a row that is here.
        try dropIdleArrivals()
        context.news.noteSifted()
    }

    /// Applies the changes that still wait: no other change follows.
    package func finish() throws {
        // If a chain of rows arrives in reverse, each round applies only one. The rest then waits in the store, and
        // each target brings in the next row: all rounds together take as long as a few.
        var isWorthwhile = hasApplied
        while isWorthwhile, !waiting.isEmpty {
            var rest: [RemoteChange] = []
            for change in waiting where try !apply(change, isFinal: false) { rest.append(change) }
            isWorthwhile = waiting.count - rest.count > (rest.count > Self.fewWaiting ? rest.count / 2 : 0)
            waiting = rest
        }
        for change in waiting { _ = try apply(change, isFinal: true) }
        waiting = []
        try settle()
    }

    /// Applies the changes of one transaction.
    package func apply(_ changes: [RemoteChange]) throws {
        for change in changes { try add(change) }
        try finish()
    }

    /// - Parameter isFinal: false if a change whose target is missing is to be left for later.
    /// - Returns: false if it was left.
    package func apply(_ change: RemoteChange, isFinal: Bool) throws -> Bool {
        if try applyPlainly(change) { return true }
        if change.kind == .delete {
            try applyDelete(change)
            return true
        }
        if let found = try change.table.find(db, change.identity) {
            return try merge(change, into: found, isFinal: isFinal)
        }
        return try mergeAbsent(change, isFinal: isFinal)
    }

    // MARK: Rows that are here

    package func merge(_ change: RemoteChange, into found: EntityTable.Found, isFinal: Bool) throws -> Bool {
        let table = change.table
        var clocks = yielding(found.clocks, to: change)
        let outcome = change.merge(into: &clocks)
        guard clocks != found.clocks else {
            try journalLost(change, outcome.lost, found)
            return true
        }
        // A snapshot may include a delete, and values that were set after it.
        guard outcome.isAlive || change.state == nil else {
            try journalDeletedValues(change, found)
            try bury(table, change.identity, try evict(table, found, change.identity, merging: change))
            return true
        }
        let won = change.columns.filter { outcome.won.contains($0.slot) }
        let slots = won.map(\.slot)
        let values =
            try won.map { ($0.slot, $0.value) } + overtaken(change, found.clocks, by: clocks)
            + waitingBeside(table, change.identity, slots)
        guard let resolved = try resolve(table, change.identity, values, isFinal: isFinal, at: found.address) else {
            return false
        }
        try noteName(change, won)
        try journalOverruled(change, won, found)
        try journalLost(change, outcome.lost, found)
        if let blocked = resolved.blocked {
            // The column may not be null, and its target is missing: the row is evicted until the target comes.
            let pendingRow = try evict(table, found, change.identity, merging: change)
            try block(table, change.identity, pendingRow, detail: blocked.detail, wait: blocked.wait)
            return true
        }
        let left = try leftKeys(table, found, resolved.values.map(\.slot))
        let before = try oldValues(table, found.address)
        switch try write(table, change.identity, found.address, clocks, resolved.values) {
        case .done:
            try table.saveClocks(db, row: found.address.row, change.identity, clocks)
            try logUpdate(
                table, found.address, resolved.values, time: change.stamp.time.milliseconds, before: before)
            try savePending(table, change.identity, resolved)
            noteKeys(table, change.identity, resolved.values.map(\.slot), left: left)
            try leaveIfFiltered(table, change.identity)
        case .lostUnique(let winner):
            let pendingRow = try evict(table, found, change.identity, merging: change)
            try park(table, change.identity, pendingRow, behind: winner, wait: resolved.wait)
        case .refused where !resolved.pending.isEmpty:
            let pendingRow = try evict(table, found, change.identity, merging: change)
            try awaitTarget(table, change.identity, pendingRow, resolved)
        case .refused(let detail):
            // The table refuses only the values. The row's newer insert still counts against an older delete.
            var existence = found.clocks
            change.mergeExistence(into: &existence)
            if existence != found.clocks {
                try table.saveClocks(db, row: found.address.row, change.identity, existence)
            }
            var pendingRow =
                try pendingRows.load(table, change.identity) ?? PendingRow(clocks: RowClocks(), values: [:])
            for column in won where existence.stamp(of: column.slot) != change.stamp(of: column.slot) {
                _ = pendingRow.clocks.update([column.slot], at: change.stamp(of: column.slot))
                pendingRow.values[column.slot] = column.value
            }
            try pendingRows.save(table, change.identity, pendingRow, .constraint, detail: detail)
        }
        return true
    }

    /// Returns the new-row values of columns that were last set before a delete that a snapshot reports.
    private func overtaken(
        _ change: RemoteChange, _ old: RowClocks, by new: RowClocks
    ) throws -> [(Int, Value)] {
        guard change.state != nil, old.deleted != new.deleted else { return [] }
        let slots = change.table.slots.filter { old.stamp(of: $0) != nil && new.stamp(of: $0) == nil }
        guard !slots.isEmpty else { return [] }
        let values = try newValues(change.table, slots, new)
        return slots.map { ($0, values[$0] ?? .null) }
    }

    /// Returns the values of columns that the newest insert of a row did not set.
    private func newValues(_ table: EntityTable, _ slots: [Int], _ clocks: RowClocks) throws -> [Int: Value] {
        var values = try table.defaultValues(db)
        if let inserted = clocks.inserted {
            let others = table.slots.filter { !slots.contains($0) }
            for (slot, time) in try table.timeValues(db, besides: others, at: inserted.time.milliseconds) {
                values[slot] = time
            }
        }
        return values
    }

    /// A row that a filter keeps on this node gives way to one of the same key that another node has published: its
    /// values go into the conflict journal, and the row no longer counts as unpublished.
    private func yielding(_ clocks: RowClocks, to change: RemoteChange) -> RowClocks {
        guard clocks.isUnpublished, context.filters[change.entity]?.publish != nil,
            change.state?.clocks.isAlive ?? (change.kind == .insert)
        else { return clocks }
        return RowClocks(inserted: .zero, deleted: clocks.deleted)
    }

    /// Stores a row as pending that needs a missing target.
    package func block(
        _ table: EntityTable, _ identity: StableID, _ pendingRow: PendingRow, detail: String, wait: [UInt8]
    ) throws {
        try pendingRows.save(table, identity, pendingRow, .missingTarget, detail: detail, wait: wait)
        blocked.append(RowIdentity(entity: table.entity.id, identity: identity))
    }

    /// Stores a row as pending that its table doesn't take while a reference of it is null.
    private func awaitTarget(
        _ table: EntityTable, _ identity: StableID, _ pendingRow: PendingRow, _ resolved: Resolved
    ) throws {
        guard let first = resolved.pending.first, let column = table.columnsBySlot[first.slot] else { return }
        let detail = "\(table.entity.name).\(column.name) refers to a missing row, and must not be NULL"
        try pendingRows.save(table, identity, pendingRow, .missingTarget, detail: detail, wait: resolved.wait)
        let name = RowIdentity(entity: table.entity.id, identity: identity)
        refused.insert(name)
        blocked.append(name)
    }

    /// Returns the row's values before an update, if the history keeps old values.
    package func oldValues(_ table: EntityTable, _ address: RowAddress) throws -> [Int: Value]? {
        table.entity.keepsOldValues ? try table.read(db, address) : nil
    }

    /// - Parameter before: the result of ``oldValues(_:_:)`` before the update.
    package func logUpdate(
        _ table: EntityTable, _ address: RowAddress, _ values: [(slot: Int, value: Value)], time: Int64,
        before: [Int: Value]?
    ) throws {
        guard !values.isEmpty else { return }
        try before.map { try logBefore(table, address, values, time: time, $0) }
        var logged = values
        // Every update includes the row's identity, like those that triggers log.
        let identity = table.identityColumns.filter { column in !values.contains { $0.slot == column.slot } }
        if !identity.isEmpty {
            if case .identity(let local) = address {
                for (column, value) in zip(table.identityColumns, local) where identity.contains(column) {
                    logged.append((column.slot, value))
                }
            } else if let row = try table.read(db, address) {
                for column in identity { logged.append((column.slot, row[column.slot] ?? .null)) }
            }
        }
        let mask = ChangeMask.value(slots: values.map(\.slot), highest: table.highestSlot)
        try table.log(db, ChangeKind.update.code, row: address.row, mask: mask, time: time, logged)
    }

    /// Logs the values that the update logged next replaces, as triggers do.
    private func logBefore(
        _ table: EntityTable, _ address: RowAddress, _ values: [(slot: Int, value: Value)], time: Int64,
        _ before: [Int: Value]
    ) throws {
        // A row keeps its stable ID here (decision 11). If the values before had another identity, the update would
        // have to include all columns.
        guard !values.contains(where: { table.isIdentity($0.slot) && before[$0.slot] != $0.value }) else { return }
        // Includes columns that are set to the value that they have: the update lists them, and a column that is left
        // out here would be read as NULL.
        let slots = table.identityColumns.map(\.slot) + values.map(\.slot).filter { !table.isIdentity($0) }
        try table.log(
            db, ChangeKind.Mark.before, row: address.row, mask: .null, time: time,
            slots.map { ($0, before[$0] ?? .null) })
    }

    // MARK: Rows that are not here

    package func mergeAbsent(_ change: RemoteChange, isFinal: Bool) throws -> Bool {
        let table = change.table
        let pending = try pendingRows.load(table, change.identity)
        var pendingRow =
            try pending
            ?? PendingRow(
                clocks: RowClocks(deleted: try context.tombstones.find(db, table.entity.id, change.identity)),
                values: [:])
        pendingRow.clocks = yielding(pendingRow.clocks, to: change)
        let outcome = change.merge(into: &pendingRow)
        if change.kind == .insert { pendingRow.localID = change.localID ?? pendingRow.localID }
        if !pendingRow.clocks.isAlive, change.state != nil || change.stamp.node.isSource,
            let deleted = pendingRow.clocks.deleted
        {
            try OwedDelete.note(db, table.entity.id, change.identity, deletedAt: deleted)
        }
        if change.state != nil {
            guard try mergeAbsentState(change, pendingRow, outcome, isFinal: isFinal) else { return false }
            if let pending { try journalOverruled(change, outcome, pending, merged: pendingRow.clocks) }
            return true
        }
        guard pendingRow.clocks.isAlive else {
            if let deleted = pendingRow.clocks.deleted, deleted.node == context.node {
                try journalDeleted(change, outcome.lost, by: deleted)
            }
            if change.kind == .update, !outcome.won.isEmpty {
                let wasDeleted = pendingRow.clocks.deleted != nil
                try pendingRows.save(table, change.identity, pendingRow, wasDeleted ? .deleted : .missingRow)
                if let deleted = pendingRow.clocks.deleted { try journalDeleted(change, outcome.won, by: deleted) }
            }
            return true
        }
        guard try materialize(table, change.identity, pendingRow, isFinal: isFinal) else { return false }
        if let pending { try journalOverruled(change, outcome, pending, merged: pendingRow.clocks) }
        return true
    }

    private func mergeAbsentState(
        _ change: RemoteChange, _ pendingRow: PendingRow, _ outcome: RowClocks.Outcome, isFinal: Bool
    ) throws -> Bool {
        let table = change.table
        if pendingRow.clocks.isAlive { return try materialize(table, change.identity, pendingRow, isFinal: isFinal) }
        if pendingRow.clocks.deleted != nil {
            try bury(table, change.identity, pendingRow)
        } else if !outcome.won.isEmpty {
            try pendingRows.save(table, change.identity, pendingRow, .missingRow)
        }
        return true
    }

    /// Puts a live row into its table, or stores it as pending with the reason.
    package func materialize(_ table: EntityTable, _ identity: StableID, _ pendingRow: PendingRow, isFinal: Bool) throws
        -> Bool
    {
        guard try context.filters.takes(table.entity, pendingRow.clocks, pendingRow.values, node: context.node) else {
            try pendingRows.save(table, identity, pendingRow, .filtered)
            return true
        }
        // A new change never refers to such a table, but a change stored by an earlier version may. It is retried when
        // the schema changes.
        if let gone = pendingRow.values.values.lazy.compactMap(untracked).first {
            try pendingRows.save(
                table, identity, pendingRow, .missingTarget, detail: "a row of \(gone), which is not tracked")
            return true
        }
        var values: [(Int, Value)] = pendingRow.values(in: table)
        if values.count < table.slots.count, let inserted = pendingRow.clocks.inserted {
            values += try table.timeValues(db, besides: values.map(\.0), at: inserted.time.milliseconds)
        }
        let place = assumed.rows[RowIdentity(entity: table.entity.id, identity: identity)]
        let preferred = try place ?? freeRow(table, identity, wanted: pendingRow.localID)
        guard let resolved = try resolve(table, identity, values, isFinal: isFinal, newRow: preferred) else {
            return false
        }
        if let blocked = resolved.blocked {
            try block(table, identity, pendingRow, detail: blocked.detail, wait: blocked.wait)
            return true
        }
        if identity.hasNoIdentity, !resolved.pending.isEmpty {
            // A pending reference has to be found by the row's ID.
            try awaitTarget(table, identity, pendingRow, resolved)
            return true
        }
        if table.mayBeNamedOtherwise, table.declaredIdentity(pendingRow.values) != identity {
            try table.beginRecording(db)
        }
        let row: Int64?
        let gone = orphans.count
        let written = try attempt(table, identity, pendingRow.clocks, resolved.values) {
            // An evicted row leaves its integer key to the rows that refer to it.
            let key =
                try preferred == nil && orphans.count > gone
                ? freeRow(table, identity, wanted: pendingRow.localID) : preferred
            return try table.insert(db, row: key, resolved.values)
        }
        switch written {
        case .done(let inserted): row = inserted
        case .refused where !resolved.pending.isEmpty:
            try awaitTarget(table, identity, pendingRow, resolved)
            return true
        case .lostUnique(let winner):
            try park(table, identity, pendingRow, behind: winner, wait: resolved.wait)
            return true
        case .refused:
            try makePending(table, identity, pendingRow, written)
            return true
        }
        if identity.hasNoIdentity {
            noteReturn(table, identity, rowid: db.lastInsertedRowID, resolved.values)
        } else {
            try table.saveClocks(db, row: row, identity, pendingRow.clocks)
        }
        let time = (pendingRow.clocks.newest ?? .zero).time.milliseconds
        try table.log(
            db, ChangeKind.insert.code, row: row, mask: .null, time: time, try inserted(table, row, resolved.values))
        // The row may claim other keys now than those that others wait for.
        if pendingRow.id != nil { context.news.note(freed: table.entity.id) }
        try pendingRows.remove(pendingRow)
        try savePending(table, identity, resolved)
        if !identity.hasNoIdentity { context.noteArrival(table.entity, identity) }
        return true
    }

    /// Returns what a row holds right after its insert: columns that the insert did not set have their defaults.
    private func inserted(
        _ table: EntityTable, _ row: Int64?, _ values: [(slot: Int, value: Value)]
    ) throws -> [(slot: Int, value: Value)] {
        guard values.count < table.slots.count else { return values }
        let identity = table.identityColumns.map { column in values.first { $0.slot == column.slot }?.value ?? .null }
        guard let held = try table.read(db, row.map { RowAddress.key($0) } ?? .identity(identity)) else {
            return values
        }
        return table.slots.map { slot in (slot, held[slot] ?? .null) }
    }

    /// Takes a row out of its table if the filter no longer accepts it, with its pending references.
    package func leaveIfFiltered(_ table: EntityTable, _ identity: StableID) throws {
        guard context.filters[table.entity]?.subscribe != nil, let found = try table.find(db, identity),
            var values = try table.read(db, found.address)
        else { return }
        for (slot, value) in try pending(table.entity, identity) { values[slot] = value }
        guard try !context.filters.takes(table.entity, found.clocks, values, node: context.node) else { return }
        try pendingRows.save(table, identity, try evict(table, found, identity), .filtered)
    }

    // MARK: Deletes

    private func applyDelete(_ change: RemoteChange) throws {
        let table = change.table
        if let found = try table.find(db, change.identity) ?? findOrphaned(table, change.identity) {
            var clocks = found.clocks
            let outcome = clocks.delete(at: change.stamp)
            guard !outcome.isAlive else {
                guard clocks != found.clocks else { return }
                try table.saveClocks(db, row: found.address.row, change.identity, clocks)
                // The delete may overrule changes of the row that are pending.
                context.noteArrival(table.entity, change.identity)
                return try clear(
                    table, change.identity, EntityTable.Found(address: found.address, clocks: clocks),
                    table.slots.filter { found.clocks.stamp(of: $0) != nil && clocks.stamp(of: $0) == nil })
            }
            try journalDeletedValues(change, found)
            var pendingRow = try evict(table, found, change.identity)
            _ = pendingRow.clocks.delete(at: change.stamp)
            try bury(table, change.identity, pendingRow)
            return
        }
        let pending = try pendingRows.load(table, change.identity)
        if let pending { try journalDeletedValues(change, pending) }
        try context.tombstones.raise(db, table.entity.id, change.identity, change.stamp)
        // The history has no change of this, and the row's insert may have come as a state, too, or waits.
        if pending != nil || change.state != nil {
            try OwedDelete.note(db, table.entity.id, change.identity, deletedAt: change.stamp)
        }
        guard let pending, let rest = try pendingRows.load(table, change.identity) else { return }
        if !rest.clocks.isAlive {
            try bury(table, change.identity, rest)
        } else if rest.values.count < pending.values.count {
            // The row survives without values that it may have waited for.
            _ = try materialize(table, change.identity, rest, isFinal: true)
        }
    }

    /// Returns the row even if a row that its identity refers to was removed in this transaction.
    private func findOrphaned(_ table: EntityTable, _ identity: StableID) throws -> EntityTable.Found? {
        guard !orphans.isEmpty, !table.recordsNames else { return nil }
        let values = try context.resolver.localValues(table.entity, identity) { target, identity in
            try context.resolver.row(db, target, identity)
                ?? orphans.row(of: RowIdentity(entity: target.id, identity: identity))
        }
        return try values.flatMap { try table.find(db, identity, holding: $0) }
    }

    /// Resets columns to the values of a new row: the row survives through an insert that did not set them, and their
    /// former values are older than its newest delete.
    private func clear(
        _ table: EntityTable, _ identity: StableID, _ found: EntityTable.Found, _ slots: [Int]
    ) throws {
        guard !slots.isEmpty else { return }
        let current = try table.read(db, found.address) ?? [:]
        let new = try newValues(table, slots, found.clocks)
        let values = slots.map { (slot: $0, value: new[$0] ?? .null) }.filter { current[$0.slot] != $0.value }
        for slot in slots { try savePending(table, identity, Resolved(settled: [slot])) }
        let left = try leftKeys(table, found, values.map(\.slot))
        let written = try write(table, identity, found.address, found.clocks, values)
        if case .done = written {
            let before = table.entity.keepsOldValues ? current : nil
            try logUpdate(table, found.address, values, time: context.now(), before: before)
            return noteKeys(table, identity, slots, left: left)
        }
        var pendingRow = try evict(table, found, identity)
        for value in values { pendingRow.values[value.slot] = nil }
        try makePending(table, identity, pendingRow, written)
    }

    /// Keeps values of a deleted row that were set after its delete: they count once the row is inserted again.
    package func bury(_ table: EntityTable, _ identity: StableID, _ pendingRow: PendingRow) throws {
        var pendingRow = pendingRow
        if let deleted = pendingRow.clocks.deleted {
            try context.tombstones.raise(db, table.entity.id, identity, deleted)
        }
        if pendingRow.clocks.inserted == .zero {
            try context.tombstones.makeLasting(db, table.entity.id, identity, of: pendingRow.clocks)
        }
        pendingRow.values = pendingRow.values.filter { slot, _ in
            pendingRow.clocks.exceptions[slot].map { pendingRow.clocks.stamp(of: slot) == $0 } ?? false
        }
        if pendingRow.values.isEmpty {
            try pendingRows.remove(pendingRow)
        } else {
            try pendingRows.save(table, identity, pendingRow, .deleted)
        }
    }

    /// Returns the integer key for a new row. Nil means the one that SQLite assigns.
    ///
    /// Never returns the key of a removed row while rows that referred to it still hold that key, even if they are yet
    /// to be processed; nor one that ``RowNumbers/isSpent(_:_:row:for:)``.
    ///
    /// - Parameter taken: the keys of other rows that are not in the table yet. If given, a key is returned.
    package func freeRow(
        _ table: EntityTable, _ identity: StableID, wanted: Int64?, taken: Set<Int64>? = nil
    ) throws -> Int64? {
        guard table.entity.localKey != nil else { return nil }
        let name = RowIdentity(entity: table.entity.id, identity: identity)
        let left = try context.left.keys(db, of: table.entity.id)
        func isFree(_ row: Int64) throws -> Bool {
            guard !orphans.hold(row, besides: name), !left.contains(row), !(taken?.contains(row) ?? false) else {
                return false
            }
            return try table.keptIdentity(db, row: row) == nil
                && !context.numbers.isSpent(db, table.entity, row: row, for: identity)
        }
        for row in [orphans.row(of: name), wanted.flatMap(RowNumber.takenOver)].compactMap(\.self) {
            if try isFree(row) && !table.hasRow(db, row) { return row }
        }
        // With AUTOINCREMENT, SQLite continues after the highest number that it ever assigned.
        var next = try max(table.highestRow(db), table.highestGiven(db))
        // SQLite has no next number left, and would pick a random one, or fail.
        let isExhausted = next > RowNumber.highestTakenOver
        if isExhausted { next = try table.highestRow(db, upTo: RowNumber.highestTakenOver) }
        next += 1
        let refersToItself = table.entity.columns.contains { $0.reference == table.entity.name }
        if taken == nil, !isExhausted, orphans.isEmpty, left.isEmpty, !refersToItself, try isFree(next) { return nil }
        while try !isFree(next) { next += 1 }
        return next
    }
}
