package import Foundation
package import GRDB
package import MartletCore
package import MartletStore
import MartletWire

/// State that enqueueing and applying share: the catalog, compiled statements, the clock, and what is pending.
///
/// Confined to the engine's connection. Made anew after a rollback, since parts of it may be ahead of the file.
package final class EngineContext {
    package let catalog: Catalog
    package let filters: RowFilters
    /// SQLite's schema version when the catalog was read: another process may be the one that notices a change.
    package let schemaVersion: Int64?
    package let statement = StatementCache()
    package let resolver: IdentityResolver
    package let encoding: TextEncoding
    package let valueKeys: ValueKeys
    /// What the user's triggers derive from tables. Nil for contexts that only read.
    package let derived: DerivedWrites?
    package let nodes: NodeDirectory
    package let tombstones: Tombstones
    package let pendingReferences: PendingReferences
    package let additions: ColumnAdditions
    package let clocks: ClockCoding
    package let recent: RecentEntries
    package let notes = CommitNotes()
    package let positions = ReadPositions()
    package private(set) lazy var keys = KeyChanges(self)
    package let log: LogReader
    package let early: EarlyUpdates
    package let reused: ReusedKeys
    /// Locally deleted rows that others may still refer to, since programs may have switched foreign keys off.
    package let left: LeftRows
    package let node: NodeID
    package let nodeName: String
    package let nodeNumber: Int64
    package let namespace: UUID
    package var clock: HybridClock
    /// The wall clock of the engine, in milliseconds since 1970.
    package let now: @Sendable () -> Int64
    /// How far ahead of the wall clock a stamp may be, in milliseconds.
    package let maxClockSkew: Int64
    private var tables: [Int64: EntityTable] = [:]
    private var tablesByName: [String: EntityTable] = [:]
    /// The statements that each commit runs, compiled once: looking up a statement by its text takes as long as running
    /// it.
    package var progress = ReadProgress.Statements()
    private var findMeta: PreparedStatement?
    private var saveMeta: PreparedStatement?
    /// The number of pending rows. While there are none, nothing need be looked up for them.
    package var pendingRowCount: Int64
    /// The watermark up to which tombstones were garbage-collected.
    package var collected: HybridTime
    /// Rows that have come in this transaction, and that others may wait for.
    package var arrived: [RowIdentity] = []
    /// The newest transaction that is known to have its clocks. Later ones may have them already.
    package var stamped: Int64?
    /// The mark of the transaction that ``stamped`` is in the middle of. Nil also if it is not known.
    package var openTransaction: Int64?
    /// The encoded part of a transaction that is enqueued in part.
    package var partial: PartialTransaction?
    /// Which pending changes may continue once a transaction that is enqueued in part is complete.
    package enum Unsettled {
        case nothing
        /// Those that wait for the rows in ``arrived`` and ``freedEntities``.
        case known
        /// Any: only a former context knew which.
        case unknown
    }

    package var unsettled: Unsettled
    /// What the applier has logged.
    package let applied: AppliedLog
    package let releases: ReleaseWatch
    /// See ``SyncMeta/unpublishedOfKnown``.
    package var hasUnpublishedOfKnown: Bool
    /// True once changes that name an unknown table or column were retried: the context's schema may have it. Set by
    /// the session.
    var hasRetriedUnknown = false
    /// True if this connection itself has changed the schema since the context was made.
    package var hasChangedSchema = false
    /// Entities with a deleted or changed row, so that a unique key may be free now.
    package var freedEntities: Set<Int64> = []
    /// True if pending changes may continue, or rows must become pending.
    package var hasNews: Bool { !arrived.isEmpty || !freedEntities.isEmpty || !left.isEmpty }

    /// - Throws: ``/MartletCore/StoreError`` if the store has an older format, which a connection that only reads can't
    ///   migrate.
    package init(
        _ db: Database, now: @escaping @Sendable () -> Int64, derived: DerivedWrites? = nil,
        maxClockSkew: Int64 = 300_000, closing: ClosingStatements? = nil, releases: ReleaseWatch = ReleaseWatch()
    ) throws {
        self.releases = releases
        applied = AppliedLog(closing)
        self.now = now
        self.maxClockSkew = maxClockSkew
        self.derived = derived
        try SyncSchema.requireCurrent(db, of: "The store")
        schemaVersion = try Self.schemaVersion(db)
        let recorded = try Catalog.load(db)
        try derived?.follow(db, recorded)
        filters = try RowFilters(db, recorded)
        catalog = recorded.marking(local: filters.localSlots)
        encoding = try TextEncoding(db)
        resolver = IdentityResolver(catalog: catalog, statements: statement, encoding: encoding)
        valueKeys = ValueKeys(catalog)
        nodes = try NodeDirectory(db)
        additions = try ColumnAdditions(db)
        clocks = ClockCoding(nodes: nodes, additions: additions)
        recent = try RecentEntries(db, coding: clocks)
        log = try LogReader(db, catalog: catalog)
        early = try EarlyUpdates(db, log)
        reused = try ReusedKeys(db, log)
        left = try LeftRows(db)
        guard let uuid = try Meta.text(db, SyncMeta.node).flatMap(UUID.init(uuidString:)),
            let namespace = try Meta.text(db, MetaKey.hiddenNamespace).flatMap(UUID.init(uuidString:))
        else { throw StoreError(.corrupt, "The store has no node ID.", hint: "Restore the file from a backup.") }
        node = NodeID(uuid)
        nodeName = try Meta.text(db, SyncMeta.nodeName) ?? node.description
        nodeNumber = try nodes.number(db, node, name: nodeName)
        self.namespace = namespace
        clock = HybridClock(last: HybridTime(rawValue: UInt64(bitPattern: try Meta.integer(db, SyncMeta.clock) ?? 0)))
        collected = HybridTime(rawValue: UInt64(bitPattern: try Meta.integer(db, SyncMeta.collected) ?? 0))
        hasUnpublishedOfKnown = try Meta.integer(db, SyncMeta.unpublishedOfKnown) != nil
        partial = try PartialTransaction(db)
        unsettled = try Meta.integer(db, SyncMeta.unsettled) != nil ? .unknown : .nothing
        pendingRowCount = try Int64.fetchOne(db, sql: "SELECT count(*) FROM _martlet_shadows") ?? 0
        tombstones = try Tombstones(db, nodes, statement)
        pendingReferences = try PendingReferences(db, statement)
    }

    package static func schemaVersion(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA main.schema_version"))
    }

    package func table(_ entity: Entity) -> EntityTable {
        if let table = tables[entity.id] { return table }
        // Older changes come with the entity as it was then.
        let table = EntityTable(entity: catalog[entity.id] ?? entity, context: self)
        tables[entity.id] = table
        return table
    }

    /// Returns the table that a change names. See ``/MartletStore/Catalog/entity(_:_:)``.
    package func table(named name: String, _ formerNames: [String]) -> EntityTable? {
        if let table = tablesByName[name] { return table }
        guard let entity = catalog.entity(name, formerNames) else { return nil }
        let table = table(entity)
        // Names that only another node uses are not cached, since there is no end of them.
        if entity.name == name { tablesByName[name] = table }
        return table
    }

    package func meta(_ db: Database, _ key: String) throws -> Int64? {
        let read = try kept(&findMeta, db, "SELECT value FROM \(InternalName.meta) WHERE key = ?1")
        read.bind(1, text: key)
        return try read.first { $0.optionalInteger(0) } ?? nil
    }

    package func setMeta(_ db: Database, _ key: String, _ value: Int64) throws {
        let save = try kept(
            &saveMeta, db,
            "INSERT INTO \(InternalName.meta)(key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2")
        save.bind(1, text: key)
        save.bind(2, value)
        try save.run()
    }

    /// Records that all transactions up to this one have their clocks.
    package func noteStamped(_ id: Int64) {
        notes.add(MetaKey.stamped, id)
        stamped = id
    }

    /// Returns the clock reading for a local change that a program made at this time. If the program's clock was ahead,
    /// that must not put all later changes into the future: other nodes would keep them waiting.
    package func tick(at milliseconds: Int64) -> HybridTime {
        clock.tick(at: min(milliseconds, now() + maxClockSkew))
    }

    /// Records the clock in a transaction of the engine, which stores it when it ends.
    package func noteClock() {
        notes.add(SyncMeta.clock, Int64(bitPattern: clock.last.rawValue))
    }

    /// Remembers that the row has come, if anything may wait for it.
    package func noteArrival(_ entity: Entity, _ identity: StableID) {
        if pendingRowCount > 0 || !pendingReferences.isEmpty {
            arrived.append(RowIdentity(entity: entity.id, identity: identity))
        }
    }

    /// Remembers that a local row was deleted or has left a key, if others may refer to it.
    package func noteLeft(_ entity: Entity, _ row: LeftRow) {
        if table(entity).isReferenced { left.add(row, of: entity.id, valueKeys.byTarget[entity.id] ?? []) }
    }

    /// Remembers, also across a crash, that pending changes may continue once the transaction is enqueued as a whole.
    package func noteUnsettled(_ db: Database) throws {
        guard unsettled == .nothing else { return }
        try setMeta(db, SyncMeta.unsettled, 1)
        unsettled = .known
    }

    /// Forgets that pending changes may continue: all have been retried.
    package func noteSettled(_ db: Database) throws {
        guard unsettled != .nothing else { return }
        try db.execute(sql: "DELETE FROM \(InternalName.meta) WHERE key = ?", arguments: [SyncMeta.unsettled])
        unsettled = .nothing
    }

    /// Returns this node's first transaction from this sequence on that the outbox has, and its time. Nil if there is
    /// none.
    package func firstOwn(_ db: Database, from sequence: Int64) throws -> (sequence: Int64, time: HybridTime)? {
        var first: (sequence: Int64, time: HybridTime)?
        try Outbox.forEach(db, in: sequence...Int64.max) { entry in
            first = try entry.beginning(db).map { (entry.sequence, HybridTime(rawValue: $0.hlc)) }
            return false
        }
        return first
    }

    // MARK: Reserved and retired keys

    /// Remembers that an ID was assigned to a row that has not come yet.
    package func reserve(_ db: Database, _ entity: Entity, row: Int64) throws {
        let save = try statement(db, ReservedRows.add)
        save.bind(1, entity.id)
        save.bind(2, row)
        try save.run()
    }

    /// Returns true for the integer key of a row that has not come yet.
    package func isReserved(_ db: Database, _ entity: Entity, row: Int64) throws -> Bool {
        let find = try statement(
            db, "SELECT 1 FROM \(InternalName.reserved) WHERE entity = ?1 AND row = ?2")
        find.bind(1, entity.id)
        find.bind(2, row)
        return try find.first { _ in true } ?? false
    }

    /// Records that the row has come.
    package func noteReserved(_ db: Database, _ entity: Entity, row: Int64) throws {
        let remove = try statement(db, ReservedRows.remove)
        remove.bind(1, entity.id)
        remove.bind(2, row)
        try remove.run()
    }

    /// Drops the notes that other programs' statements made of rows that they might displace: those statements are
    /// over. For this connection's own writes, the engine writes the log and removes no notes.
    package func dropNotes(_ db: Database) throws {
        // With a condition: without one, SQLite writes a page even if there is nothing to delete.
        try statement(db, "DELETE FROM \(InternalName.replaced) WHERE e > 0").run()
    }

    /// Keeps a row's stable ID, for the history and for references that are written later.
    package func retire(_ db: Database, _ entity: Entity, row: Int64, until change: Int64, _ identity: StableID) throws
    {
        let save = try statement(
            db, "INSERT OR REPLACE INTO \(InternalName.retired)(entity, row, until, ident) VALUES (?1, ?2, ?3, ?4)")
        save.bind(1, entity.id)
        save.bind(2, row)
        save.bind(3, change)
        save.bind(4, blob: identity.bytes)
        try save.run()
    }
}

/// The key for what a pending row waits for.
package enum WaitKey {
    /// Any row at all: the pending row waits for several rows, and any of them may be enough.
    package static let anything: [UInt8] = Array("*".utf8)

    /// A missing row. The pending row is found by these bytes.
    package static func target(_ entity: Int64, _ identity: StableID) -> [UInt8] {
        Array("\(entity):".utf8) + identity.bytes
    }
}

/// The entity and stable ID of a row.
package struct RowIdentity: Hashable {
    package var entity: Int64
    package var identity: StableID

    package init(entity: Int64, identity: StableID) {
        self.entity = entity
        self.identity = identity
    }

    /// Returns all results of a query for `entity, ident`.
    package static func all(_ find: PreparedStatement) throws -> [RowIdentity] {
        var names: [RowIdentity] = []
        while try find.step() {
            names.append(RowIdentity(entity: find.integer(0), identity: StableID(bytes: find.blob(1))))
        }
        return names
    }
}
