public import Foundation
import GRDB
package import MartletStore

/// The result of restamping what was stamped in the future.
public struct RestampReport: Sendable, Equatable {
    /// Rows with such a stamp, deleted rows included.
    public var rows = 0
    /// The latest time among those stamps. Nil if there were none.
    public var latest: Date?
    /// Transactions that the new ones replace: other nodes keep those waiting.
    public var replaced = 0
    /// Transactions that were added to the outbox.
    public var published = 0

    public init() {}
}

/// The stamps of a store that are in the future, because they were made under a clock that was ahead.
package struct FutureStamps: Sendable, Equatable {
    package var rows = 0
    /// The clock that every later change has to exceed, in milliseconds since 1970.
    package var clock: Int64

    /// Returns nil if the clock is not ahead of this time. Reads rows only if it is.
    ///
    /// - Parameter limit: in milliseconds since 1970.
    package static func read(_ store: Store, after limit: Int64) throws -> FutureStamps? {
        try store.read { db in
            guard try Meta.integer(db, SyncMeta.format) != nil,
                let raw = try Meta.integer(db, SyncMeta.clock),
                HybridTime(rawValue: UInt64(bitPattern: raw)).milliseconds > limit
            else { return nil }
            let context = try EngineContext(db, now: { WallClock.milliseconds })
            let restamping = try Restamping(db, context, after: HybridTime(milliseconds: limit + 1))
            return FutureStamps(
                rows: try restamping.found().count, clock: HybridTime(rawValue: UInt64(bitPattern: raw)).milliseconds)
        }
    }
}

/// Gives registers that are stamped in the future present stamps, in the order of their former ones.
///
/// Runs in the caller's transaction, in which everything local is stamped. See decision 33.
struct Restamping {
    let db: Database
    let context: EngineContext
    /// The first clock reading that is too late.
    let limit: HybridTime

    init(_ db: Database, _ context: EngineContext, after limit: HybridTime) throws {
        self.db = db
        self.context = context
        self.limit = limit
    }

    /// A row with a register that is stamped too late.
    struct Found {
        var entity: Entity
        var identity: StableID
        /// The clocks of the row in its table. Nil if it is not there.
        var clocks: RowClocks?
        var row: Int64?
        var aside: Shadow?
        /// Set if the row has a separate tombstone entry.
        var tombstone: Stamp?
    }

    private func isLate(_ clocks: RowClocks) -> Bool { clocks.stamps.contains { $0.time >= limit } }

    /// Searches all rows, pending rows and tombstones.
    func found() throws -> [Found] {
        var all: [RowName: Found] = [:]
        var order: [RowName] = []
        func change(_ entity: Entity, _ identity: StableID, _ body: (inout Found) -> Void) {
            let name = RowName(entity: entity.id, identity: identity)
            if all[name] == nil { order.append(name) }
            var found = all[name] ?? Found(entity: entity, identity: identity)
            body(&found)
            all[name] = found
        }
        let shadows = ShadowStore(db: db, context: context)
        let encoder = try SnapshotRowEncoder(db, context)
        for entity in context.catalog.entities {
            try encoder.forEachRecord(of: entity) { record in
                guard isLate(record.clocks) else { return }
                change(entity, record.identity) {
                    $0.clocks = record.clocks
                    $0.row = entity.isKeyedByInteger ? record.localID : nil
                }
            }
            let stones = try PreparedStatement(
                db,
                """
                SELECT ident, hlc, node FROM \(InternalName.tombstones) WHERE entity = ?1 AND hlc >= ?2 ORDER BY ident
                """)
            stones.bind(1, entity.id)
            stones.bind(2, Int64(bitPattern: limit.rawValue))
            while try stones.step() {
                let stamp = Stamp(
                    time: HybridTime(rawValue: UInt64(bitPattern: stones.integer(1))),
                    node: context.nodes.node(stones.integer(2)))
                change(entity, StableID(bytes: stones.blob(0))) { $0.tombstone = stamp }
            }
        }
        for name in try shadows.all() {
            guard let entity = context.catalog[name.entity],
                let shadow = try shadows.load(context.table(entity), name.identity), isLate(shadow.clocks)
            else { continue }
            change(entity, name.identity) { $0.aside = shadow }
        }
        return order.compactMap { all[$0] }
    }

    /// The new stamps, by those that they replace.
    struct Stamps {
        var byOld: [Stamp: Stamp] = [:]
        /// Ascending.
        private var times: [(old: HybridTime, new: HybridTime)] = []
        /// No reading that is not too late is later than this one.
        let first: HybridTime

        init(_ olds: Set<Stamp>, _ context: EngineContext, after known: HybridTime) {
            context.clock = HybridClock(last: known)
            first = known
            for old in olds.sorted() {
                let time = context.clock.tick(at: context.now())
                byOld[old] = Stamp(time: time, node: old.node == .withheld ? .withheld : context.node)
                times.append((old.time, time))
            }
        }

        /// Returns the new time for an old one, relative to the registers that are restamped.
        func time(of old: HybridTime) -> HybridTime { times.last { $0.old <= old }?.new ?? first }

        func clocks(_ clocks: RowClocks) -> RowClocks {
            func new(_ stamp: Stamp) -> Stamp { byOld[stamp] ?? stamp }
            var exceptions = ColumnStamps()
            for entry in clocks.exceptions.entries { exceptions[entry.column] = new(entry.stamp) }
            return RowClocks(
                inserted: clocks.inserted.map(new), deleted: clocks.deleted.map(new), exceptions: exceptions)
        }
    }

    /// Computes the stamps.
    ///
    /// - Parameter known: the newest reading of this node's transactions that is not too late.
    func stamps(_ found: [Found], after known: HybridTime) -> Stamps {
        var late: Set<Stamp> = []
        var known = max(known, HybridTime(milliseconds: context.now()))
        for stamp in found.flatMap(\.stamps) {
            if stamp.time >= limit { late.insert(stamp) } else { known = max(known, stamp.time) }
        }
        return Stamps(late, context, after: known)
    }

    /// Moves the times at which columns were added: the clock of an insert stands for the columns that existed then.
    func moveAdditions(_ stamps: Stamps) throws {
        let rows = try Row.fetchAll(
            db, sql: "SELECT entity, slot, added FROM \(InternalName.columns) WHERE added >= ?",
            arguments: [Int64(bitPattern: limit.rawValue)])
        for row in rows {
            let old = HybridTime(rawValue: UInt64(bitPattern: row["added"] as Int64))
            try db.execute(
                sql: "UPDATE \(InternalName.columns) SET added = ? WHERE entity = ? AND slot = ?",
                arguments: [
                    Int64(bitPattern: stamps.time(of: old).rawValue), row["entity"] as Int64, row["slot"] as Int64,
                ])
        }
    }

    /// Stores the new stamps.
    ///
    /// - Returns: the changes to publish, in the order of their stamps.
    func save(_ found: [Found], _ stamps: Stamps) throws -> [WireChange] {
        let shadows = ShadowStore(db: db, context: context)
        let applier = Applier(db, context)
        var changes: [WireChange] = []
        let new = Set(stamps.byOld.values)
        for one in found {
            let table = context.table(one.entity)
            if let stone = one.tombstone.flatMap({ stamps.byOld[$0] }) {
                try context.setTombstone(db, one.entity.id, one.identity, stone)
            }
            if let clocks = one.clocks { try table.saveClocks(db, row: one.row, one.identity, stamps.clocks(clocks)) }
            if var aside = one.aside {
                aside.clocks = stamps.clocks(aside.clocks)
                try shadows.restamp(aside)
            }
            guard let record = try applier.record(table, one.identity) else { continue }
            changes += try record.changes(of: one.entity, stampedWith: new, context)
        }
        return changes.sorted { $0.clockStep < $1.clockStep }
    }
}

extension Restamping.Found {
    fileprivate var stamps: [Stamp] {
        (clocks?.stamps ?? []) + (aside?.clocks.stamps ?? []) + (tombstone.map { [$0] } ?? [])
    }
}

extension RowClocks {
    fileprivate var stamps: [Stamp] {
        [inserted, deleted].compactMap(\.self) + exceptions.entries.map(\.stamp)
    }
}

extension RowRecord {
    /// Returns changes for the registers that have one of these stamps. Their steps are whole clock readings.
    fileprivate func changes(
        of entity: Entity, stampedWith new: Set<Stamp>, _ context: EngineContext
    ) throws -> [WireChange] {
        func isTold(_ stamp: Stamp) -> Bool { stamp.node != .withheld && new.contains(stamp) }
        var changes: [WireChange] = []
        if let deleted = clocks.deleted, isTold(deleted) {
            changes.append(try message(.delete, entity, [], deleted, context))
        }
        var columns: [Stamp: [EntityColumn]] = [:]
        for column in entity.sharedColumns {
            guard let register = self.register(column.slot), isTold(register.stamp) else { continue }
            columns[register.stamp, default: []].append(column)
        }
        if let inserted = clocks.inserted, isTold(inserted), clocks.isAlive {
            changes.append(
                try message(.insert, entity, columns.removeValue(forKey: inserted) ?? [], inserted, context))
        }
        for (stamp, columns) in columns { changes.append(try message(.update, entity, columns, stamp, context)) }
        return changes
    }
}

extension SyncEngine {
    /// How many changes go into one transaction.
    private static let restampBatchChanges = 500

    /// Restamps everything that is stamped further in the future than the allowed skew, and publishes it. It was
    /// written under a clock that was ahead, and until that time other nodes keep it waiting, with everything that this
    /// node writes.
    ///
    /// Runs in one SQLite transaction, in which other writers wait. Not while anything else uses this engine, and not
    /// before the clock is right.
    /// - Returns: what was found. If nothing is stamped in the future, nothing is changed.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written; nothing was changed then.
    @discardableResult
    public func restamp() throws -> RestampReport {
        var report = RestampReport()
        try transaction { db, context in
            let skew = HybridTime(milliseconds: now() + maxClockSkew + 1)
            guard context.clock.last >= skew else { return }
            let own = try OwnTransactions(db, after: skew)
            let restamping = try Restamping(db, context, after: min(skew, own.firstLate ?? skew))
            let found = try restamping.found()
            let stamps = restamping.stamps(found, after: own.newest)
            report.latest = stamps.byOld.keys.max().map { Date(milliseconds: $0.time.milliseconds) }
            try restamping.moveAdditions(stamps)
            // The context read the columns' times earlier, and holds clocks that are not flushed.
            try context.recent.fold(db)
            try context.notes.write(db)
            let fresh = try EngineContext(db, now: now, maxClockSkew: maxClockSkew)
            fresh.clock = context.clock
            let changes = try Restamping(db, fresh, after: restamping.limit).save(found, stamps)
            try fresh.recent.finish(db, foldingFrom: configuration.recentClocks, fresh.notes)
            try fresh.notes.write(db)
            report.rows = found.count
            report.replaced = own.late.count
            try publish(changes, replacing: own.late, db, context, &report)
            context.noteClock()
        }
        try forgetContext()
        return report
    }

    private func publish(
        _ changes: [WireChange], replacing late: [Int64], _ db: Database, _ context: EngineContext,
        _ report: inout RestampReport
    ) throws {
        var changes = changes[...]
        var late = late[...]
        while !changes.isEmpty || !late.isEmpty {
            try publish(
                Array(changes.prefix(Self.restampBatchChanges)), db, context,
                restating: Array(late.prefix(InputBounds.maxRestated)))
            changes = changes.dropFirst(Self.restampBatchChanges)
            late = late.dropFirst(InputBounds.maxRestated)
            report.published += 1
        }
    }

    /// This node's transactions in the outbox, by whether they are stamped too late.
    private struct OwnTransactions {
        var late: [Int64] = []
        /// The first clock reading of the late ones.
        var firstLate: HybridTime?
        /// The last clock reading of the others.
        var newest = HybridTime.zero

        init(_ db: Database, after limit: HybridTime) throws {
            let rows = try Row.fetchCursor(
                db, sql: "SELECT sequence, payload, restated FROM _martlet_outbox ORDER BY sequence")
            while let row = try rows.next() {
                guard let transaction = try? DecodedTransaction(payload: row.bytes("payload")),
                    let latest = transaction.latest
                else { continue }
                guard latest >= limit else {
                    newest = max(newest, latest)
                    continue
                }
                if (row["restated"] as Int64?) == nil { late.append(row["sequence"]) }
                firstLate = min(firstLate ?? .init(rawValue: .max), HybridTime(rawValue: transaction.header.hlc))
            }
        }
    }
}
