package import GRDB
package import MartletCore
package import MartletMerge
import MartletStore

/// The clocks of ``/MartletStore/RecentClocks`` in memory: the newest clocks of rows that have no integer key, and
/// which of those rows are gone.
///
/// Confined to the engine's connection. Recreated after a rollback, together with its context.
package final class RecentEntries {
    package enum Entry {
        case clocks(RowClocks)
        /// The row is gone.
        case gone

        package var clocks: RowClocks? { if case .clocks(let clocks) = self { clocks } else { nil } }
    }

    /// What is known of one entity's rows.
    private final class Rows {
        let entity: Int64
        var entries: [StableID: Entry] = [:]

        init(of entity: Int64) { self.entity = entity }
    }

    /// The number of unwritten bytes from which they are written without waiting for the transaction's end.
    private static let maxUnwritten = 65_536

    /// The most entries in memory, however many rows one transaction has. The largest number that a dictionary of
    /// 131,072 places takes; they are about 17 MB.
    private static let maxCount = 98_000

    private let coding: ClockCoding
    private var byEntity: [Int64: Rows] = [:]
    /// The rows that were last asked for: most changes concern the same table as the one before.
    private var latest: Rows?
    private var count = 0
    /// Entries that were set since the last write.
    private var unwritten: [UInt8] = []
    /// The contents of ``/MartletStore/RecentClocks/newest``.
    private var newest: [UInt8] = []
    private let maxNewest: Int
    private var last: Int64 = 0
    private var flushes: Int64
    private let append: PreparedStatement
    private let state: PreparedStatement

    package init(_ db: Database, coding: ClockCoding) throws {
        self.coding = coding
        append = try PreparedStatement(db, "INSERT INTO \(InternalName.recent)(clocks) VALUES (?1)")
        state = try PreparedStatement(
            db,
            """
            SELECT coalesce((SELECT max(id) FROM \(InternalName.recent)), 0),
            coalesce((SELECT value FROM \(InternalName.meta) WHERE key = '\(RecentClocks.flushCount)'), 0),
            (SELECT value FROM \(InternalName.meta) WHERE key = '\(RecentClocks.newest)')
            """)
        (last, flushes, newest) = try state.first { ($0.integer(0), $0.integer(1), $0.blob(2)) } ?? (0, 0, [])
        maxNewest = try RecentClocks.maxNewest(db)
        try RecentClocks.forEach(db) { record in
            count += 1
            rows(of: record.entity).entries[StableID(bytes: Array(record.identity))] =
                record.clock.map { .clocks(coding.decode($0, of: record.entity)) } ?? .gone
        }
    }

    /// Returns false if another connection has flushed the entries, or has set others.
    package func isCurrent() throws -> Bool {
        // The newest ones only grow, until they are moved to the table.
        try state.first {
            $0.integer(0) == last && $0.integer(1) == flushes && $0.withBlob(2) { $0.count } == newest.count
        } ?? false
    }

    private func rows(of entity: Int64) -> Rows {
        if let latest, latest.entity == entity { return latest }
        let known = byEntity[entity]
        let rows = known ?? Rows(of: entity)
        if known == nil { byEntity[entity] = rows }
        latest = rows
        return rows
    }

    /// Returns what is known of the row in memory.
    package func find(_ entity: Int64, _ identity: StableID) -> Entry? { rows(of: entity).entries[identity] }

    /// Returns the rows that something is known of in memory.
    package func identities(of entity: Int64) -> [StableID] { Array(rows(of: entity).entries.keys) }

    /// Sets an entry, which ``finish(_:flushingFrom:_:)`` writes.
    ///
    /// - Parameter clocks: nil if the row is gone.
    package func set(_ db: Database, _ entity: Int64, _ identity: StableID, _ clocks: RowClocks?) throws {
        if let clocks {
            let inserted = clocks.inserted ?? .zero
            ClockRecord.append(
                identity.bytes, of: entity, time: inserted.time.stored,
                node: try coding.nodes.number(db, inserted.node),
                attributes: try coding.attributes(db, clocks, of: entity), to: &unwritten)
        } else {
            ClockRecord.append(gone: identity.bytes, of: entity, to: &unwritten)
        }
        count += 1
        rows(of: entity).entries[identity] = clocks.map { .clocks($0) } ?? .gone
        if count >= Self.maxCount { return try flush(db) }
        if unwritten.count >= Self.maxUnwritten { try write(db) }
    }

    /// Ends each transaction that is committed: writes what was set, and flushes everything if there are many entries.
    ///
    /// - Parameter notes: what the transaction stores when it ends. A few clocks go along with that.
    package func finish(_ db: Database, flushingFrom limit: Int, _ notes: CommitNotes) throws {
        if count >= limit { return try flush(db) }
        guard !unwritten.isEmpty else { return }
        guard newest.count + unwritten.count <= maxNewest else { return try write(db) }
        newest += unwritten
        unwritten.removeAll(keepingCapacity: true)
        notes.add(RecentClocks.newest, blob: newest)
    }

    /// Writes a row of the table, together with the clocks that were waiting for more.
    private func write(_ db: Database) throws {
        guard !unwritten.isEmpty else { return }
        if !newest.isEmpty {
            unwritten.insert(contentsOf: newest, at: 0)
            newest.removeAll(keepingCapacity: true)
            try RecentClocks.deleteNewest(db)
        }
        append.bind(1, blob: unwritten)
        try append.run()
        last = db.lastInsertedRowID
        unwritten.removeAll(keepingCapacity: true)
    }

    package func flush(_ db: Database) throws {
        guard count > 0 else { return }
        try write(db)
        try RecentClocks.flush(db)
        // If there were entries, there will be as many again.
        for rows in byEntity.values { rows.entries.removeAll(keepingCapacity: !rows.entries.isEmpty) }
        (count, last) = (0, 0)
        newest.removeAll(keepingCapacity: true)
        flushes += 1
    }
}
