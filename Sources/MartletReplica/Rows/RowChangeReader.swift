package import GRDB
import MartletCore
import MartletMerge
package import MartletStore

/// Reads the changes of the history with the whole rows after them. In the caller's read transaction, in which every
/// local change is enqueued.
///
/// The log has the values that a change has set, not those of the other columns. They come from the changes before, as
/// far as those are read together; else from the values that later changes have kept; else from the row as it is today.
/// So the last record of a row always has the row as it is.
package final class RowChangeReader {
    package struct Limits: Sendable {
        package var changes: Int
        package var bytes: Int

        package init(changes: Int, bytes: Int) {
            self.changes = changes
            self.bytes = bytes
        }
    }

    package struct Part {
        package var transactions: [RowTransaction]
        /// Where the next part begins.
        package var next: RowChangePlace
        /// True if there is nothing after this part.
        package var isLast: Bool
    }

    private struct Key: Hashable {
        var entity: Int64
        var identity: StableID
    }

    /// A change as the log has it, with portable values.
    private struct Logged {
        var key: Key
        var entity: Entity
        var kind: ChangeKind
        var number: Int64?
        /// What it has set. For a delete: what is known of the row before.
        var values: [Int: Value]
        /// What an update has replaced.
        var replaced: [Int: Value]
        var time: Int64
        /// The place of its transaction in the part.
        var transaction: Int
    }

    private struct Mark {
        var id: Int64
        var first: Int64
        var transaction: RowTransaction
    }

    let db: Database
    let context: ReplicaContext
    private let applier: Applier
    let withIngested: Bool
    private let isWanted: (Entity) -> Bool
    private var present: [Key: Presence] = [:]

    private enum Presence {
        case shown(RowRecord)
        /// A filter keeps the row on this node.
        case hidden
        /// The same, and other nodes knew a row with this ID that was deleted before.
        case hiddenAgain
        case gone
        /// Another system deleted the row.
        case goneAtSource

        var record: RowRecord? { if case .shown(let record) = self { record } else { nil } }
    }

    /// - Parameters:
    ///   - withIngested: whether changes that came from another system are read.
    ///   - isWanted: returns whether changes of the table are read. Tables that the node does not sync never are.
    package init(
        _ db: Database, _ context: ReplicaContext, withIngested: Bool, isWanted: @escaping (Entity) -> Bool
    ) {
        self.db = db
        self.context = context
        self.withIngested = withIngested
        self.isWanted = isWanted
        applier = Applier(db, context)
    }

    /// The tables whose rows are read.
    package var entities: [Entity] { context.catalog.entities.filter(reads) }

    private func reads(_ entity: Entity) -> Bool {
        isWanted(entity) && !(context.filters[entity]?.isIgnored ?? false)
    }

    // MARK: Changes

    /// SQL that is true for the marks of transactions that are read.
    var isRead: String {
        guard !withIngested else { return "true" }
        // The author here, and the author at the node that another one got the transaction from.
        return "c1 IS NOT '\(TransactionAuthor.ingest)' AND c6 IS NOT '\(TransactionAuthor.ingest)'"
    }

    package func read(from place: RowChangePlace, limits: Limits) throws -> Part {
        var part = Part(transactions: [], next: place, isLast: true)
        var logged: [Logged] = []
        var bytes = 0
        let (marks, isEnd) = try self.marks(after: place, limit: limits.changes)
        part.isLast = isEnd
        for mark in marks {
            guard logged.count < limits.changes, bytes < limits.bytes else {
                part.isLast = false
                break
            }
            var transaction = mark.transaction
            let index = part.transactions.count
            var stopped: Int64?
            try context.log.forEachWhile(from: part.next.open?.change ?? mark.first, to: mark.id) { change in
                guard logged.count < limits.changes, bytes < limits.bytes else {
                    stopped = change.before == nil ? change.id : change.id - 1
                    return false
                }
                bytes += change.byteCount
                logged += try translate(change, transaction: index)
                return true
            }
            transaction.isComplete = stopped == nil
            part.transactions.append(transaction)
            if let stopped {
                part.next.open = RowChangePlace.Open(change: stopped, mark: mark.id)
                part.isLast = false
                break
            }
            part.next = RowChangePlace(mark: mark.id)
        }
        // Empty transactions are not read: nothing remains after them, either.
        if part.isLast { part.next = RowChangePlace(mark: max(part.next.mark, try Self.newestMark(db))) }
        for (change, transaction) in try whole(logged, isLast: part.isLast) {
            part.transactions[transaction].changes.append(change)
        }
        return part
    }

    /// The number of rows of the log after a place: what is still to be read, about.
    package static func remaining(_ db: Database, after mark: Int64) throws -> Int64 {
        max(0, (try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0) - mark)
    }

    /// Returns the mark of the newest transaction; 0 if there is none.
    package static func newestMark(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT id FROM \(InternalName.log) WHERE e = 0 ORDER BY id DESC LIMIT 1") ?? 0
    }

    /// Returns the transactions after a place that may have as many changes together, and whether those are all.
    private func marks(after place: RowChangePlace, limit: Int) throws -> (marks: [Mark], isEnd: Bool) {
        var marks: [Mark] = []
        let isEnd = try readMarks(after: place, limit: limit, &marks)
        let own = try Outbox.sequences(db, of: marks.map(\.id))
        for index in marks.indices where marks[index].transaction.origin == nil {
            guard let sequence = own[marks[index].id] else { continue }
            marks[index].transaction.origin = (context.node, context.nodeName, sequence)
        }
        return (marks, isEnd)
    }

    private func readMarks(after place: RowChangePlace, limit: Int, _ marks: inout [Mark]) throws -> Bool {
        let read = try PreparedStatement(
            db,
            """
            SELECT id, r, t, c1, c4, c5, c6, c7, c8 FROM \(InternalName.log)
            WHERE e = 0 AND id > ?1 AND \(isRead) AND \(HistoryClause.isShown) ORDER BY id
            """)
        // The search for the next mark reads all changes before it.
        read.bind(1, place.open.map { $0.mark - 1 } ?? place.mark)
        defer { read.reset() }
        while try read.step() {
            var transaction = RowTransaction(
                mark: read.integer(0), time: read.integer(2), author: read.optionalText(3), origin: nil, changes: [],
                isComplete: true)
            if let node = read.optionalBlob(4).flatMap({ NodeID(bytes: $0) }) {
                transaction.origin = (node, read.optionalText(8), read.integer(5))
                // What this node ingested has its author here, and none at the origin.
                if transaction.author != TransactionAuthor.ingest { transaction.author = read.optionalText(6) }
                transaction.time = read.isNull(7) ? transaction.time : read.integer(7)
            } else {
                // What this node applied belongs to other transactions.
                if transaction.author == TransactionAuthor.sync { transaction.author = nil }
            }
            marks.append(Mark(id: transaction.mark, first: read.integer(1), transaction: transaction))
            if transaction.mark - (place.open?.change ?? place.mark) > limit { return false }
        }
        return true
    }

    /// Returns the change in the form that every node understands. A change of the row's identity is a delete and an
    /// insert. A row without an identity is none.
    private func translate(_ change: LogChange, transaction: Int) throws -> [Logged] {
        guard reads(change.entity), let today = context.catalog[change.entity.id] else { return [] }
        let identity = try self.identity(change)
        let changed = change.values.filter { change.kind != .update || change.isChanged($0.column) }
        if change.kind == .update, changed.allSatisfy({ $0.column.isLocal }) { return [] }
        let values = try portable(changed, change)
        let replaced = try change.before.map { try portable($0.values, change) } ?? [:]
        func logged(_ kind: ChangeKind, _ identity: StableID, _ number: Int64?, _ values: [Int: Value]) -> Logged {
            Logged(
                key: Key(entity: today.id, identity: identity), entity: today, kind: kind, number: number,
                values: values, replaced: kind == .update ? replaced : [:], time: change.time, transaction: transaction)
        }
        let number = today.localKey == nil ? nil : change.row
        var found: [Logged] = []
        let former = change.kind == .update ? try formerIdentity(change) : nil
        if let former, former != identity {
            found.append(logged(.delete, former, today.localKey == nil ? nil : change.before?.row, replaced))
        }
        guard let identity else { return found }
        if change.givesName || former.map({ $0 != identity }) ?? false {
            found.append(logged(.insert, identity, number, try portable(change.values, change)))
        } else {
            found.append(logged(change.kind, identity, number, values))
        }
        return found
    }

    private func identity(_ change: LogChange) throws -> StableID? {
        guard change.entity.recordsNames else {
            let values = change.entity.identityColumns.compactMap { change.value(of: $0) }
            guard values.count == change.entity.identityColumns.count else { return nil }
            return try context.resolver.identity(db, change.entity, localValues: values)
        }
        guard let row = change.row else { return nil }
        return try context.resolver.retired(db, change.entity, row: row, after: change.id, newest: false)
            ?? context.resolver.identity(db, change.entity, row: row)
    }

    /// Returns the ID that the row had before an update of its identity columns. Nil if it had none, or has it still.
    private func formerIdentity(_ change: LogChange) throws -> StableID? {
        guard !change.entity.recordsNames, let before = change.before else { return nil }
        let columns = change.entity.identityColumns
        let values = columns.compactMap { column in
            before.values.first { $0.column.slot == column.slot }?.value ?? change.value(of: column)
        }
        guard !columns.isEmpty, values.count == columns.count else { return nil }
        return try context.resolver.identity(db, change.entity, localValues: values)
    }

    private func portable(
        _ values: [(column: EntityColumn, value: Value)], _ change: LogChange
    ) throws -> [Int: Value] {
        var portable: [Int: Value] = [:]
        portable.reserveCapacity(values.count)
        for (column, value) in values {
            portable[column.slot] = try reference(column, value, at: change.id) ?? value
        }
        return portable
    }

    /// Returns the row that a foreign key meant at this change. Another row may have its number by now.
    private func reference(_ column: EntityColumn, _ value: Value, at change: Int64) throws -> Value? {
        guard let name = column.reference, let target = context.catalog[name], let row = column.referredRow(value)
        else { return nil }
        let identity =
            try context.resolver.retired(db, target, row: row, after: change, newest: false)
            ?? context.resolver.identity(db, target, row: row)
        return identity.map { .reference(Reference(entity: name, identity: $0)) }
    }

    // MARK: Whole rows

    /// Returns the changes with the whole rows after them, and their transactions.
    ///
    /// - Parameter isLast: true if no change follows.
    private func whole(_ logged: [Logged], isLast: Bool) throws -> [(RowChange, transaction: Int)] {
        var rows: [Key: [Int: Value]] = [:]
        var last: [Key: Int] = [:]
        for (index, change) in logged.enumerated() { last[change.key] = index }
        var seen: Set<Key> = []
        let replaced = replacedValues(logged)
        var whole: [(RowChange, transaction: Int)] = []
        for (index, change) in logged.enumerated() {
            if seen.insert(change.key).inserted, change.kind != .insert {
                rows[change.key] = try firstRow(change, replaced[change.key] ?? [:])
            }
            let isNewest = isLast && last[change.key] == index
            guard let row = try outcome(change, rows[change.key], isNewest: isNewest) else { continue }
            let before = rows[change.key]
            let keepsOldValues = change.entity.keepsOldValues && !hasPublishFilter(change.entity)
            rows[change.key] = row.after?.values
            var found = RowChange(
                entity: change.entity, identity: change.key.identity, kind: row.kind, before: nil, after: row.after,
                stamp: try stamp(change.key, change.entity), time: change.time)
            if row.kind == .delete {
                let names = try context.table(change.entity).identityValuesIfDeclared(change.key.identity)
                let known = keepsOldValues ? (before ?? [:]).merging(change.values) { $1 } : [:]
                found.before = RowChange.Row(number: change.number, values: names.merging(known) { $1 })
            } else if row.kind == .update, keepsOldValues {
                found.before = before.map { RowChange.Row(number: change.number, values: $0) }
            }
            whole.append((found, change.transaction))
        }
        return whole
    }

    /// Returns the values that each row had before the first of these changes, as far as they kept them.
    private func replacedValues(_ logged: [Logged]) -> [Key: [Int: Value]] {
        var replaced: [Key: [Int: Value]] = [:]
        var isSet: [Key: Set<Int>] = [:]
        for change in logged {
            let old = change.kind == .delete ? change.values : change.replaced
            for (slot, value) in old where !(isSet[change.key]?.contains(slot) ?? false) {
                replaced[change.key, default: [:]][slot] = value
                isSet[change.key, default: []].insert(slot)
            }
            isSet[change.key, default: []].formUnion(change.values.keys)
        }
        return replaced
    }

    /// Returns the row before the first change that is read of it. Nil if it is not known: the row is gone by now, and
    /// its values were not kept.
    private func firstRow(_ change: Logged, _ replaced: [Int: Value]) throws -> [Int: Value]? {
        if let record = try presence(change.key, change.entity).record {
            return record.values.merging(replaced) { $1 }
        }
        let isWhole = change.entity.columns.allSatisfy { replaced[$0.slot] != nil }
        return isWhole ? replaced : nil
    }

    /// Returns the row after a change, and what the change is to somebody who knows the rows before. Nil if nobody has
    /// to know of it: a delete follows, or the row stays on this node.
    private func outcome(
        _ change: Logged, _ row: [Int: Value]?, isNewest: Bool
    ) throws -> (kind: ChangeKind, after: RowChange.Row?)? {
        let presence = try self.presence(change.key, change.entity)
        switch presence {
        case .hidden, .goneAtSource: return nil
        // Also if it arrived in a transaction of no origin, such as a snapshot.
        case .shown(let record) where !withIngested && record.clocks.isIngested: return nil
        case .shown, .hiddenAgain, .gone: break
        }
        if case .hiddenAgain = presence {
            guard change.kind == .delete else { return nil }
            return (.delete, nil)
        }
        let record = presence.record
        // Whatever the log says, the last record of a row has the row as it is. What another system has changed after
        // it is no record of its own.
        if isNewest || (!withIngested && record?.clocks.hasSource ?? false) {
            guard let record else { return (.delete, nil) }
            let kind = change.kind == .delete ? .insert : change.kind
            return (kind, RowChange.Row(number: record.localID, values: record.values))
        }
        if hasPublishFilter(change.entity), change.kind != .delete {
            // What the log has may be from before the row was published.
            guard let record else { return nil }
            return (change.kind, RowChange.Row(number: record.localID, values: record.values))
        }
        switch change.kind {
        case .delete: return (.delete, nil)
        case .insert: return (.insert, RowChange.Row(number: change.number, values: change.values))
        case .update:
            guard let row else { return nil }
            return (.update, RowChange.Row(number: change.number, values: row.merging(change.values) { $1 }))
        }
    }

    // MARK: Rows as they are

    /// Passes each row of a table that other nodes may know.
    ///
    /// - Parameter withIngested: true for all of them, false for those that did not all come from another system.
    package func forEachRow(
        of entity: Entity, withIngested: Bool, _ body: (RowChange) throws -> Void
    ) throws {
        let encoder = try SnapshotRowEncoder(db, context)
        try encoder.forEachRecord(of: entity, hasPending: false) { record in
            guard let record = shown(record), withIngested || !record.clocks.isIngested else { return }
            try body(
                RowChange(
                    entity: entity, identity: record.identity, kind: .insert, before: nil,
                    after: RowChange.Row(number: record.localID, values: record.values), stamp: newest(record),
                    time: newest(record)?.time.milliseconds ?? 0))
        }
    }

    /// Returns the delete of a row that is gone, whether or not the history has a change of it. Nil if the row is there
    /// or waits, if another system deleted it, or if other nodes don't know it.
    package func deletion(of owed: OwedDelete) throws -> RowChange? {
        guard let entity = context.catalog[owed.entity], reads(entity) else { return nil }
        let stamp = try context.tombstones.find(db, entity.id, owed.identity)
        return try deletion(of: entity, owed.identity, stamp ?? Stamp(time: owed.deleted, node: context.node))
    }

    /// Passes the delete of each row of a table that has a tombstone. Nil in place of those that
    /// ``deletion(of:)`` would not return.
    package func forEachTombstone(of entity: Entity, _ body: (RowChange?) throws -> Void) throws {
        try context.tombstones.forEach(db, of: entity.id) { tombstone in
            try body(deletion(of: entity, tombstone.identity, tombstone.stamp))
        }
    }

    private func deletion(of entity: Entity, _ identity: StableID, _ stamp: Stamp) throws -> RowChange? {
        // Not kept: there may be millions of tombstones.
        guard !stamp.node.isSource, case .gone = try findPresence(Key(entity: entity.id, identity: identity), entity),
            try !isWaiting(identity, of: entity)
        else { return nil }
        let names = try context.table(entity).identityValuesIfDeclared(identity)
        return RowChange(
            entity: entity, identity: identity, kind: .delete, before: RowChange.Row(number: nil, values: names),
            after: nil, stamp: stamp, time: stamp.time.milliseconds)
    }

    /// Returns true for a row that is not in its table, but was not deleted: it waits for something.
    private func isWaiting(_ identity: StableID, of entity: Entity) throws -> Bool {
        try applier.pendingRows.load(context.table(entity), identity)?.clocks.isAlive ?? false
    }

    private func presence(_ key: Key, _ entity: Entity) throws -> Presence {
        if let known = present[key] { return known }
        let presence = try findPresence(key, entity)
        present[key] = presence
        return presence
    }

    private func findPresence(_ key: Key, _ entity: Entity) throws -> Presence {
        let table = context.table(entity)
        guard let found = try table.find(db, key.identity), let values = try table.read(db, found.address) else {
            let stamp = try context.tombstones.find(db, entity.id, key.identity)
            if !withIngested, stamp?.node.isSource ?? false { return .goneAtSource }
            return stamp?.node == .unpublished ? .hidden : .gone
        }
        let record = RowRecord(
            identity: key.identity, clocks: found.clocks,
            values: try applier.portableValues(table, key.identity, values, withPending: false),
            localID: entity.localKey == nil ? nil : found.address.row)
        if let shown = shown(record) { return .shown(shown) }
        let deleted = try found.clocks.deleted ?? context.tombstones.find(db, entity.id, key.identity)
        guard let deleted, deleted.node != .unpublished else { return .hidden }
        return .hiddenAgain
    }

    private func hasPublishFilter(_ entity: Entity) -> Bool { context.filters[entity]?.publish != nil }

    /// Returns what other nodes may know of a row in its table. Nil if that is nothing.
    private func shown(_ record: RowRecord) -> RowRecord? {
        guard !record.clocks.isUnpublished else { return nil }
        return record.published
    }

    private func newest(_ record: RowRecord) -> Stamp? {
        record.clocks.newest.flatMap { $0 == .zero ? nil : $0 }
    }

    private func stamp(_ key: Key, _ entity: Entity) throws -> Stamp? {
        if let record = try presence(key, entity).record { return newest(record) }
        // The tombstone of a row that waits is from before its newest insert.
        guard try !isWaiting(key.identity, of: entity) else { return nil }
        return try context.tombstones.find(db, entity.id, key.identity)
    }
}

extension EntityTable {
    /// Returns the values of the identity columns of a row with this ID, by slot. Empty if Martlet assigned the ID, or
    /// if it was made under another rule.
    fileprivate func identityValuesIfDeclared(_ identity: StableID) throws -> [Int: Value] {
        let values = try identity.values()
        guard values.count == identityColumns.count else { return [:] }
        return Dictionary(zip(identityColumns.map(\.slot), values), uniquingKeysWith: { first, _ in first })
    }
}

extension RowClocks {
    /// Returns true if another system has set the row or one of its columns.
    fileprivate var hasSource: Bool {
        inserted?.node.isSource ?? false || exceptions.entries.contains { $0.stamp.node.isSource }
    }

    /// Returns true if the row came from another system, and no node has changed it.
    fileprivate var isIngested: Bool {
        inserted?.node.isSource ?? false
            && exceptions.entries.allSatisfy { $0.stamp.node.isSource || $0.stamp == .zero }
    }
}
