import Foundation
package import GRDB
package import MartletCore
package import MartletMerge
package import MartletStore
package import MartletWire

/// Gives each closed local transaction its sequence number, its clocks and stable IDs, and adds its message to the
/// outbox as it will be sent.
///
/// It runs off the writer's path, called by the publisher or the applier, and always before a remote change is merged.
/// Changes are taken in the order of the log, so that clocks and stable IDs are always those of that moment: a message
/// says what was true when the change was made, even if it is built much later.
///
/// A commit takes a slice of bounded size, so that other writers need not wait for a whole large transaction
/// (docs/decisions/0035). Changes up to ``/MartletStore/MetaKey/stamped`` have their clocks. If that is in the
/// middle of a transaction, the encoded part of its message is in ``OutboxParts``, and its entry joins the outbox with
/// its last slice.
///
/// Confined to the engine's connection, inside the caller's SQLite transaction.
package struct Enqueuer {
    package let db: Database
    package let context: ReplicaContext
    package let encoding: WireEncoding
    private let parts: OutboxParts
    package let keys: KeyChanges
    package var early: EarlyUpdates { context.early }

    package init(db: Database, context: ReplicaContext, encoding: WireEncoding) {
        self.db = db
        self.context = context
        self.encoding = encoding
        keys = context.keys
        parts = OutboxParts(db, context.statement, context.notes, context.parts)
    }

    package struct Progress {
        /// The most bytes of messages that are handed on.
        package static let maxHandedBytes = 1 << 20

        /// The first transactions that were added to the outbox, as far as they are small, so that the caller need not
        /// read them again.
        package var handed: [OutboxEntry] = []
        package var handedBytes = 0
        /// True if there may be more.
        package var hasMore = false

        /// Hands on an entry, unless they take too many bytes. There are no gaps: after one that is left out, none
        /// follows.
        package mutating func hand(_ entry: OutboxEntry) {
            guard handedBytes < Self.maxHandedBytes else { return }
            handedBytes += entry.payload.count
            handed.append(entry)
        }

        package mutating func handNoMore() { handedBytes = .max }
    }

    /// What the log says about a transaction.
    private struct ClosedTransaction {
        var id: Int64
        var first: Int64
        var time: Int64
        var author: String?
        var context: String?
        var isRemote: Bool

        init(_ mark: PreparedStatement) {
            id = mark.integer(0)
            first = mark.integer(1)
            time = mark.integer(2)
            author = mark.optionalText(3)
            context = mark.optionalText(5)
            isRemote = author == TransactionAuthor.sync || !mark.isNull(4)
        }
    }

    /// Enqueues what the slice allows. If the last transaction doesn't fit, the next call continues with it.
    package func run(_ slice: EnqueueSlice) throws -> Progress {
        var slice = slice
        let stamped = try context.meta(db, MetaKey.stamped) ?? 0
        // Changes that wait for the end of their transaction are older than the position.
        let waiting = [early.firstKept, context.reused.firstKept].compactMap(\.self).min()
        try keys.follow(db, after: min(stamped, (waiting ?? .max) - 1))
        var through = stamped
        var progress = Progress()
        var outbox = try Outbox(db, context)
        var isLocal = false
        let formerNames: OutgoingChanges.FormerNames = { [context] in context.catalog[$0]?.formerNames ?? [] }
        var open = context.stamps.openTransaction
        let marks = try context.statement(
            db, "SELECT id, r, t, c1, c4, c2 FROM \(InternalName.log) WHERE id >= ?1 AND e = 0 ORDER BY id")
        // The mark of a partly enqueued transaction is known. Searching for it would mean reading the rest of the
        // transaction.
        marks.bind(1, open ?? stamped + 1)
        defer {
            marks.reset()
            context.log.leave()
        }
        while true {
            guard slice.hasRoom else {
                progress.hasMore = true
                break
            }
            guard try marks.step() else { break }
            let transaction = ClosedTransaction(marks)
            slice.noteTransaction()
            // Echo suppression: what was applied here is never published again.
            guard !transaction.isRemote else {
                through = transaction.id
                continue
            }
            isLocal = true
            var wire = OutgoingChanges(after: context.parts.open?.last, formerNames: formerNames)
            if let end = try enqueue(transaction, after: through, &wire, &slice) {
                // The transaction continues in the next slice.
                through = end
                open = transaction.id
                try parts.add(wire, of: outbox.addressed(header(transaction)), as: encoding)
                try early.keep(db)
                try context.reused.keep(db)
                progress.hasMore = true
                break
            }
            through = transaction.id
            open = nil
            let sequence = outbox.next
            if context.parts.open != nil {
                try parts.end(wire, of: outbox.addressed(header(transaction)), as: encoding)
                try outbox.append([], of: transaction.id)
                progress.handNoMore()
            } else if !wire.isEmpty {
                let payload = try outbox.append(wire, header: header(transaction), of: transaction.id, as: encoding)
                progress.hand(OutboxEntry(sequence: sequence, payload: payload, context: transaction.context))
            }
        }
        guard through > stamped || progress.hasMore else {
            context.stamps.take(stored: stamped)
            keys.forget()
            try context.additions.decide(db, before: stamped + 1, context.clock.last)
            return progress
        }
        context.stamps.advance(through: through, in: open)
        try context.additions.decide(db, before: through + 1, context.clock.last)
        if isLocal { context.clock.note() }
        try outbox.close()
        return progress
    }

    private func header(_ transaction: ClosedTransaction) -> WireTransaction {
        var wire = WireTransaction()
        wire.timestampMs = transaction.time
        if let author = transaction.author { wire.author = author }
        return wire
    }

    /// Gives changes their clocks, and adds them to the message.
    ///
    /// - Parameter through: the last change that has its clock.
    /// - Returns: the new value of `through` if the slice ends before the transaction does; else nil.
    private func enqueue(
        _ transaction: ClosedTransaction, after through: Int64, _ changes: inout OutgoingChanges,
        _ slice: inout EnqueueSlice
    ) throws -> Int64? {
        var last = through
        let first = max(transaction.first, through + 1)
        try context.log.forEachWhile(
            from: first, to: transaction.id, keepsPlace: true,
            undecoded: { row in
                try context.additions.decide(db, before: row.id, context.clock.last)
                guard let byteCount = try enqueueOnFastPath(row, &changes) else { return nil }
                slice.note(byteCount)
                last = row.id
                return slice.hasRoomWithin
            }
        ) { change in
            try context.additions.decide(db, before: change.id, context.clock.last)
            switch change.kind {
            case .insert: try stampInsert(change, &changes)
            case .update: try stampUpdate(change, &changes)
            case .delete: try stampDelete(change, &changes)
            }
            slice.note(change.byteCount)
            last = change.id
            return slice.hasRoomWithin
        }
        // Nothing follows from these changes, and the message need not be stored in parts.
        if through < transaction.first, last + 1 == transaction.id, context.reused.isEmpty, early.isEmpty {
            return nil
        }
        // Also if that was the last change: processing its consequences takes time, too.
        guard slice.hasRoomWithin || last == through, try stampReused(&changes, &slice, before: transaction.id)
        else { return last }
        for (update, identity) in try early.takeAll(db) {
            // If the row has no clocks, it gets none: they would hide a row without an insert from the audit, or make
            // the audit report a row that is gone.
            guard let clocks = try context.table(update.entity).clocks(db, row: update.row, identity) else { continue }
            try stampColumns(update, identity, clocks, &changes)
        }
        return nil
    }

    /// - Parameter isUnpublished: true for a change that a filter keeps on this node.
    package func tick(_ change: LogChange, isUnpublished: Bool = false) -> Stamp {
        Stamp(time: context.clock.tick(at: change.time), node: isUnpublished ? .unpublished : context.node)
    }

    // MARK: Insert

    package func stampInsert(_ change: LogChange, _ wire: inout OutgoingChanges) throws {
        guard let identity = try insertedIdentity(change) else { return }
        try stampInsert(change, identity, &wire)
    }

    /// - Parameter identity: the row's stable ID from now on.
    package func stampInsert(_ logged: LogChange, _ identity: StableID, _ wire: inout OutgoingChanges) throws {
        let change = try withEarlyValues(logged, identity)
        let entity = change.entity
        let table = context.table(entity)
        try noteReused(change, identity)
        try buryOverwritten(change, identity, &wire)
        let isFiltered = try withholds(change)
        if try isNewRow(change, identity, isFiltered, &wire) { return try noteArrival(change, identity) }
        let awaited = try awaitedName(change, identity)
        // A row with this key or this ID was overwritten (REPLACE).
        let old = try table.clocks(db, row: change.row, identity)
        let isUnpublished = isFiltered && (isIgnored(entity) || old?.isUnpublished ?? true)
        let stamp = tick(change, isUnpublished: isUnpublished)
        if isUnpublished, let old, !old.isUnpublished { try noteUnpublishedOfKnown() }
        var clocks = old ?? RowClocks()
        if old == nil, let deleted = try context.tombstones.find(db, entity.id, identity) {
            clocks = RowClocks(deleted: deleted)
        }
        let replaced = clocks
        _ = clocks.insert(change.values.map(\.column.slot), of: table.slots, at: stamp)
        try table.saveClocks(db, row: change.row, identity, clocks)
        if !isUnpublished { try add(.insert, change, identity, stamp, to: &wire) { replaced.stamp(of: $0) } }
        try noteArrival(change, identity)
        guard old != nil else { return }
        if let row = change.row { try context.numbers.release(db, entity, row: row) }
        try overrulePending(entity, identity, table.slots, of: replaced, at: stamp)
        noteFreed(entity)
        if let awaited { try stampFollowers(of: change, from: awaited, to: identity, &wire) }
    }

    /// Returns the insert with the values that the row got from a trigger that is newer than the capture triggers. That
    /// trigger ran after the insert, but its update is in the log before the insert.
    private func withEarlyValues(_ insert: LogChange, _ identity: StableID) throws -> LogChange {
        let values = try early.take(db, insert.entity, identity)
        guard !values.isEmpty else { return insert }
        var change = insert
        change.values = insert.values.map { column, value in (column, values[column.slot] ?? value) }
        return change
    }

    /// Deletes the former row of a key that was overwritten in place (REPLACE), for which the log has no delete. Its ID
    /// differs if an integer key in it now belongs to another row than when it was inserted.
    private func buryOverwritten(_ change: LogChange, _ identity: StableID, _ wire: inout OutgoingChanges) throws {
        let table = context.table(change.entity)
        guard change.kind == .insert, !table.recordsNames, let row = change.row,
            change.entity.identityColumns.contains(where: { $0.reference != nil }),
            let kept = try table.keptIdentity(db, row: row), kept != identity,
            try !context.numbers.isReserved(db, change.entity, row: row)
        else { return }
        try stampDelete(of: kept, change, &wire)
    }

    /// Gives the row its clocks if nothing was ever known about it, which is nearly always the case.
    private func isNewRow(
        _ change: LogChange, _ identity: StableID, _ isUnpublished: Bool, _ wire: inout OutgoingChanges
    ) throws -> Bool {
        let table = context.table(change.entity)
        guard table.isPlain, change.values.count == table.slots.count, table.hasLocalKey == (change.row != nil),
            try context.tombstones.find(db, change.entity.id, identity) == nil
        else { return false }
        let before = context.clock.last
        let stamp = tick(change, isUnpublished: isUnpublished)
        let node = isUnpublished ? try context.nodes.number(db, .unpublished) : context.nodeNumber
        guard try table.side.insert(db, row: change.row, identity, stamp, node: node) else {
            context.clock.set(before)
            return false
        }
        if !isUnpublished { try add(.insert, change, identity, stamp, to: &wire) }
        return true
    }

    private func insertedIdentity(_ change: LogChange) throws -> StableID? {
        let entity = change.entity
        if entity.identity == .hidden, let row = change.row {
            return try context.table(entity).keptIdentity(db, row: row)
                ?? context.hiddenIDs.inserted(change: change.id, time: change.time)
        }
        let declared = try besidesOwn(declaredIdentity(entity, change.values, at: change.id), change)
        try recordName(declared, change)
        guard context.table(entity).recordsNames, let row = change.row else { return declared }
        if let kept = try context.table(entity).keptIdentity(db, row: row),
            try !context.numbers.isReserved(db, entity, row: row)
        {
            return kept
        }
        return try freeName(entity, declared, at: change.id)
    }

    package func declaredIdentity(
        _ entity: Entity, _ values: [(column: EntityColumn, value: Value)], at change: Int64,
        setBy update: LogChange? = nil
    ) throws -> StableID? {
        var identity: [Value] = []
        for column in entity.identityColumns {
            guard let value = values.first(where: { $0.column.slot == column.slot })?.value else { return nil }
            // NULL equals nothing, itself included: such a row has no ID.
            if value.isNull { return nil }
            identity.append(
                try portable(value, column, at: change, isSet: update.map { isSet(column, by: $0) } ?? false))
        }
        return StableID(columns: identity, mayBePart: entity.integerKey != nil)
    }

    private func isSet(_ column: EntityColumn, by change: LogChange) -> Bool {
        change.kind == .update && change.isChanged(column)
    }

    // MARK: Update

    private func stampUpdate(_ change: LogChange, _ wire: inout OutgoingChanges) throws {
        let entity = change.entity
        let table = context.table(entity)
        if let old = change.before?.row, let new = change.row, old != new {
            // Entries of the history under the old key keep its ID.
            if let name = try table.keptIdentity(db, row: old) {
                try context.numbers.retire(db, entity, row: old, until: change.id, name)
                try noteReused(change, name)
                context.noteLeft(entity, RemovedTarget(identity: name, row: old))
            }
            try table.moveClocks(db, from: old, to: new)
        }
        if table.recordsNames { return try stampKeptUpdate(change, &wire) }
        let before = change.before.flatMap { before in before.values.isEmpty ? nil : before.values }
        let old = try before.flatMap {
            try currentName(
                table, declaredIdentity(entity, $0, at: change.id), $0, row: change.row, at: change.id)
        }
        guard let declared = try declaredIdentity(entity, change.values, at: change.id, setBy: change) else {
            try recordName(nil, change)
            if table.recordsNames { return try stampKeptUpdate(change, &wire) }
            guard let old else { return noteChangeWithoutIdentity(entity) }
            return try stampLoss(of: old, change, &wire)
        }
        if change.givesName { return try stampInsert(change, declared, &wire) }
        // If no identity column changes, the row's ID may be from before its target was removed.
        let isReidentified = entity.identityColumns.contains(where: change.isChanged)
        let current =
            try isReidentified ? nil : currentName(table, declared, change.values, row: change.row, at: change.id)
        let identity = current ?? declared
        if let old, old != identity { return try stampRename(change, from: old, to: identity, &wire) }
        var update = change
        update.values = change.values.filter { change.isChanged($0.column) }
        if let from = change.before?.row, from != change.row {
            // Values that a foreign-key action set on the row itself are earlier in the log, under its new key.
            let early = try early.take(db, entity, identity)
            update.values += entity.columns.compactMap { column in
                update.values.contains { $0.column.slot == column.slot } ? nil : early[column.slot].map { (column, $0) }
            }
        }
        guard !update.values.isEmpty else { return }
        let clocks = try table.clocks(db, row: change.row, identity)
        if try isAhead(of: clocks, update, identity) {
            return early.add(update, try displacingName(entity, declared, change) ?? identity)
        }
        try stampColumns(update, identity, clocks, &wire)
    }

    /// Returns true if the row doesn't have this ID yet: the change cascaded through a foreign key from the row to
    /// itself, and precedes in the log the change of identity that caused it.
    private func isAhead(of clocks: RowClocks?, _ change: LogChange, _ identity: StableID) throws -> Bool {
        guard let row = change.row, change.entity.isKeyedByInteger else { return clocks == nil }
        return try context.table(change.entity).keptIdentity(db, row: row).map { $0 != identity } ?? true
    }

    package func stampColumns(
        _ update: LogChange, _ identity: StableID, _ known: RowClocks?, _ wire: inout OutgoingChanges
    ) throws {
        let entity = update.entity
        if known?.isUnpublished ?? false, try publishIfItEnters(update, identity, &wire) { return }
        let isUnpublished = isIgnored(entity) || known?.isUnpublished ?? false
        var clocks = known ?? RowClocks(inserted: .zero)
        let replaced = clocks
        let stamp = tick(update, isUnpublished: isUnpublished)
        if isUnpublished, !(known?.isUnpublished ?? false) { try noteUnpublishedOfKnown() }
        let slots = update.values.map(\.column.slot)
        _ = clocks.update(slots, at: stamp)
        try context.table(entity).saveClocks(db, row: update.row, identity, clocks)
        if !isUnpublished, update.values.contains(where: { !$0.column.isLocal }) {
            try add(.update, update, identity, stamp, to: &wire) { replaced.stamp(of: $0) }
        }
        try overrulePending(entity, identity, slots, of: replaced, at: stamp)
        noteFreed(entity)
        noteLeftKeys(entity, slots)
        // Pending changes of the row may fit now, and others may have waited for its values.
        context.noteArrival(entity, identity)
    }

    // MARK: Delete

    private func stampDelete(_ change: LogChange, _ wire: inout OutgoingChanges) throws {
        let entity = change.entity
        let table = context.table(entity)
        let kept = try change.row.flatMap { entity.isKeyedByInteger ? try table.keptIdentity(db, row: $0) : nil }
        guard
            let identity = try kept
                ?? currentName(
                    table, declaredIdentity(entity, change.values, at: change.id), change.values, row: change.row,
                    at: change.id)
        else { return noteChangeWithoutIdentity(entity) }
        let clocks = try table.clocks(db, row: change.row, identity)
        if clocks == nil, try isGone(table, identity) { return }
        let stamp = try bury(change, identity, clocks, &wire)
        try table.removeClocks(db, row: change.row, identity)
        if let row = change.row { try context.numbers.retire(db, entity, row: row, until: change.id, identity) }
        if try stampRemaining(identity, change, &wire) {
            // What is pending stays with the other row.
        } else if let stamp, let clocks {
            try overrulePending(entity, identity, table.slots, of: clocks, at: stamp, .deleted)
        } else {
            try forgetPending(entity, identity, nil)
        }
        noteFreed(entity)
        noteLeft(change, identity)
    }

    /// Returns true if the row, which has no clocks here, was deleted before or is pending: then no program can have
    /// deleted it. A delete with a present clock would reach rows that others have inserted since.
    private func isGone(_ table: EntityTable, _ identity: StableID) throws -> Bool {
        try context.tombstones.find(db, table.entity.id, identity) != nil
            || PendingRows(db: db, context: context).load(table, identity) != nil
    }

    /// Adds the delete of a row to the message, and stores its tombstone. Does neither for an unpublished row, and only
    /// the latter in a table that the filters ignore.
    ///
    /// - Returns: the stamp of the delete, if a tombstone was stored.
    @discardableResult
    package func bury(
        _ change: LogChange, _ identity: StableID, _ clocks: RowClocks?, _ wire: inout OutgoingChanges
    ) throws -> Stamp? {
        if clocks?.isUnpublished ?? false { return nil }
        let isUnpublished = isIgnored(change.entity)
        let stamp = tick(change, isUnpublished: isUnpublished)
        let applier = Applier(db, context)
        let table = context.table(change.entity)
        let pending = try applier.pendingRows.load(table, identity)
        if isUnpublished { try noteUnpublishedOfKnown() }
        if !isUnpublished {
            try add(.delete, change, identity, stamp, replaces: clocks?.newest?.time ?? .zero, to: &wire)
        }
        try context.tombstones.set(db, change.entity.id, identity, stamp)
        try context.tombstones.makeLasting(db, change.entity.id, identity, of: clocks)
        if let pending { try applier.settle(pending, of: table, identity, deletedAt: stamp) }
        return stamp
    }

    // MARK: Messages

    /// Adds a change to the message.
    ///
    /// - Parameters:
    ///   - replaces: for a delete, when the row's newest value was set.
    ///   - replaced: returns the stamp of the value that is replaced, by slot.
    package func add(
        _ kind: ChangeKind, _ change: LogChange, _ identity: StableID, _ stamp: Stamp, replaces: HybridTime = .zero,
        to wire: inout OutgoingChanges, replaced: (Int) -> Stamp? = { _ in nil }
    ) throws {
        let entity = change.entity
        let hasLocalID = kind == .insert && entity.localKey != nil
        let head = OutgoingChanges.Head(
            kind, of: entity.name, formerNames: entity.formerNames, identity, at: stamp.time,
            localID: hasLocalID ? change.row : nil, replaces: replaces)
        try wire.append(head) { columns in
            for (column, value) in change.values where !column.isDropped && !column.isLocal {
                let (name, formerNames) = entity.names(column)
                try columns.append(
                    name, formerNames: formerNames,
                    portable(value, column, at: change.id, isSet: kind != .delete && isSet(column, by: change)),
                    replaces: kind == .delete ? .zero : replaced(column.slot)?.time ?? .zero)
            }
        }
    }

    /// Forgets pending references of a row, because the local change replaces them. Nil for `slots`: all of them.
    package func forgetPending(_ entity: Entity, _ identity: StableID, _ slots: [Int]?) throws {
        guard !context.pendingReferences.isEmpty else { return }
        for slot in slots ?? context.table(entity).slots {
            try context.pendingReferences.remove(db, entity, identity, slot: slot)
        }
    }

    /// Records that a unique key of the entity may have become free.
    package func noteFreed(_ entity: Entity) {
        if context.pendingRows.count > 0 { context.news.note(freed: entity.id) }
    }
}
