import Foundation
package import GRDB
package import MartletCore
package import MartletStore
import MartletWire

/// What enqueuing and applying know of the store: the catalog, and one owner for each piece of state that is kept in
/// memory. Nothing here can be replaced; each owner changes its own state only. The owners know neither the context nor
/// each other, unless they are below.
///
/// Confined to the engine's connection. Recreated after a rollback, since parts of it may be ahead of the file.
package final class ReplicaContext {
    /// What reading and writing rows knows of all this. Most of it is repeated here.
    package let tables: TableContext
    package let catalog: Catalog
    package let filters: RowFilters
    /// SQLite's schema version when the catalog was read: another process may be the one that notices a change.
    package let schemaVersion: Int64?
    package let statement: StatementCache
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
    package let chunks = KnownChunks()
    package let quarantined = DeadLetterSize()
    package let keys: KeyChanges
    package let log: LogReader
    package let early: EarlyUpdates
    package let reused: ReusedKeys
    /// Locally deleted rows that others may still refer to, since programs may have switched foreign keys off.
    package let left: RemovedTargets
    package let node: NodeID
    package let nodeName: String
    package let nodeNumber: Int64
    package let hiddenIDs: HiddenIDRule
    package let clock: NodeClock
    /// The wall clock of the engine, in milliseconds since 1970.
    package let now: @Sendable () -> Int64
    /// How far ahead of the wall clock a stamp may be, in milliseconds.
    package let maxClockSkew: Int64
    package let pendingRows: PendingRowCount
    package let news: PendingWakeups
    package let collected: CollectedWatermark
    package let numbers: RowNumbers
    package let meta = MetaValues()
    package let stamps: StampProgress
    package let parts: PartialOutbox
    /// What the applier has logged.
    package let applied: AppliedLog
    package let releases: ReleaseWatch
    /// The tables that the fast path has looked up so far. Nil for one that is not plain.
    private var plainTables: [Int64: PlainTable?] = [:]
    /// True once changes that name an unknown table or column were retried: the context's schema may have it. Set by
    /// the session.
    var hasRetriedUnknown = false
    /// True once ``SyncMeta/unpublishedOfKnown`` is known to be set. Set by the enqueuer.
    var hasUnpublishedOfKnown = false
    /// True if this connection itself has changed the schema since the context was made.
    var hasChangedSchema: Bool { tables.hasChangedSchema }
    /// True if pending changes may continue, or rows must become pending.
    package var hasNews: Bool { !news.isEmpty || !left.isEmpty }

    /// - Throws: ``/MartletCore/StoreError`` if the store has an older format, which a connection that only reads can't
    ///   migrate.
    package init(
        _ db: Database, now: @escaping @Sendable () -> Int64, derived: DerivedWrites? = nil,
        maxClockSkew: Int64 = 300_000, closing: ClosingStatements? = nil, releases: ReleaseWatch = ReleaseWatch()
    ) throws {
        self.releases = releases
        self.now = now
        self.maxClockSkew = maxClockSkew
        self.derived = derived
        try SyncSchema.requireCurrent(db, of: "The store")
        schemaVersion = try Self.schemaVersion(db)
        let recorded = try Catalog.load(db)
        try derived?.follow(db, recorded)
        filters = try RowFilters(db, recorded)
        catalog = recorded.marking(local: filters.localSlots)
        applied = AppliedLog(closing)
        tables = try TableContext(db, catalog, derived: derived, applied: applied, now: now)
        statement = tables.statement
        encoding = tables.encoding
        resolver = tables.resolver
        valueKeys = tables.valueKeys
        nodes = tables.nodes
        additions = tables.additions
        clocks = tables.clocks
        recent = tables.recent
        tombstones = tables.tombstones
        numbers = tables.numbers
        keys = KeyChanges(statement)
        log = try LogReader(db, catalog: catalog)
        early = try EarlyUpdates(db, log)
        reused = try ReusedKeys(db, log)
        left = try RemovedTargets(db)
        guard let uuid = try Meta.text(db, SyncMeta.node).flatMap(UUID.init(uuidString:)) else {
            throw StoreError(.corrupt, "The store has no node ID.", hint: "Restore the file from a backup.")
        }
        node = NodeID(uuid)
        nodeName = try Meta.text(db, SyncMeta.nodeName) ?? node.description
        nodeNumber = try nodes.number(db, node, name: nodeName)
        hiddenIDs = try HiddenIDRule.load(db)
        clock = NodeClock(
            last: HybridTime(stored: try Meta.integer(db, SyncMeta.clock) ?? 0), now: now,
            maxSkew: maxClockSkew, notes)
        collected = try CollectedWatermark(db, meta, clock)
        stamps = StampProgress(notes)
        parts = try PartialOutbox(db)
        news = try PendingWakeups(db, meta)
        pendingRows = try PendingRowCount(db)
        pendingReferences = try PendingReferences(db, statement)
    }

    package static func schemaVersion(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA main.schema_version"))
    }

    package func table(_ entity: Entity) -> EntityTable { tables.table(entity) }

    /// Returns the table for the enqueuer's fast path. Nil if it is not plain.
    package func plainTable(_ entity: Int64) -> PlainTable? {
        if let known = plainTables[entity] { return known }
        let plain = catalog[entity].flatMap { PlainTable(table($0), filters) }
        plainTables[entity] = .some(plain)
        return plain
    }

    /// Returns the table that a change names. See ``/MartletStore/Catalog/entity(_:_:)``.
    package func table(named name: String, _ formerNames: [String]) -> EntityTable? {
        tables.table(named: name, formerNames)
    }

    /// Drops what is cached of single tables: somebody else may have written.
    func forgetCached() {
        positions.forget()
        chunks.forget()
        quarantined.forget()
        numbers.forget()
    }

    /// Remembers that the row has come, if anything may wait for it.
    package func noteArrival(_ entity: Entity, _ identity: StableID) {
        if pendingRows.count > 0 || !pendingReferences.isEmpty {
            news.note(arrival: RowIdentity(entity: entity.id, identity: identity))
        }
    }

    /// Remembers that a local row was deleted or has left a key, if others may refer to it.
    package func noteLeft(_ entity: Entity, _ row: RemovedTarget) {
        if table(entity).isReferenced { left.add(row, of: entity.id, valueKeys.byTarget[entity.id] ?? []) }
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
}
