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

    /// A flush that takes several commits. What it has written to the side tables stays in memory and in the table
    /// until it has written everything: after a crash, the next flush writes it again. Records that are set meanwhile
    /// follow.
    private struct Flush {
        /// The records that are left to write.
        var rest: ArraySlice<RecentClocks.Place>
        /// The end of its records in memory, and in the table.
        let end: Int
        let row: Int64
    }

    /// The number of unwritten bytes from which they are written without waiting for the transaction's end.
    private static let maxUnwritten = 65_536

    /// The number of records from which they are flushed without waiting for the transaction's end, however many rows
    /// it has: about as many as the index takes with 131,072 slots.
    private static let maxCount = 98_000
    /// The same, in bytes. A record mostly has some 40; long keys take more.
    private static let maxBytes = 8 << 20
    /// In how many commits records are flushed, if those set few others.
    private static let slicesPerFlush = 4

    private let coding: ClockCoding
    /// All records since the last flush, in the order in which they were set.
    private var records: [UInt8] = []
    private var index = RecordIndex()
    private var count = 0
    private var flushing: Flush?
    /// How many records were set since the last commit.
    private var added = 0
    /// True until the first commit: what is in memory was there before.
    private var isLoaded = true
    /// The end of the records in the table.
    private var written = 0
    /// The end of those that follow in ``/MartletStore/RecentClocks/newest``.
    private var noted = 0
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
        let newest: Int
        (last, flushes, newest) =
            try state.first { ($0.integer(0), $0.integer(1), $0.withBlob(2) { $0.count }) } ?? (0, 0, 0)
        maxNewest = try RecentClocks.maxNewest(db)
        records = try RecentClocks.all(db)
        (written, noted) = (records.count - newest, records.count)
        try reindex()
    }

    private func reindex() throws {
        index.removeAll()
        count = 0
        try records.withUnsafeBytes { records in
            try ClockRecord.forEach(in: records) { record in
                index.note(record, in: records)
                count += 1
            }
        }
    }

    /// Returns false if another connection has flushed the entries, or has set others.
    package func isCurrent() throws -> Bool {
        // The newest ones only grow, until they are moved to the table.
        try state.first {
            $0.integer(0) == last && $0.integer(1) == flushes && $0.withBlob(2) { $0.count } == noted - written
        } ?? false
    }

    /// Returns what is known of the row in memory.
    package func find(_ entity: Int64, _ identity: StableID) -> Entry? {
        records.withUnsafeBytes { records in
            identity.bytes.withUnsafeBytes { index.record(of: entity, $0, in: records) }
                .map { $0.clock.map { .clocks(coding.decode($0, of: entity)) } ?? .gone }
        }
    }

    /// Returns the rows that something is known of in memory.
    package func identities(of entity: Int64) -> [StableID] {
        var identities: [StableID] = []
        records.withUnsafeBytes { records in
            index.forEach(in: records) { record in
                if record.entity == entity { identities.append(StableID(bytes: Array(record.identity))) }
            }
        }
        return identities
    }

    /// Sets an entry, which ``finish(_:flushingFrom:_:)`` writes.
    ///
    /// - Parameter clocks: nil if the row is gone.
    package func set(_ db: Database, _ entity: Int64, _ identity: StableID, _ clocks: RowClocks?) throws {
        let place = records.count
        if let clocks {
            let inserted = clocks.inserted ?? .zero
            ClockRecord.append(
                identity.bytes, of: entity, time: inserted.time.stored,
                node: try coding.nodes.number(db, inserted.node),
                attributes: try coding.attributes(db, clocks, of: entity), to: &records)
        } else {
            ClockRecord.append(gone: identity.bytes, of: entity, to: &records)
        }
        records.withUnsafeBytes { records in
            if let record = ClockRecord(in: records, at: place) { index.note(record, in: records) }
        }
        count += 1
        added += 1
        if count >= Self.maxCount || records.count >= Self.maxBytes { return try flush(db) }
        if records.count - noted >= Self.maxUnwritten { try write(db) }
    }

    /// Ends each transaction that is committed: writes what was set, and flushes some of it if there is much.
    ///
    /// - Parameters:
    ///   - limit: the number of records that begins a flush. The more there are, the fewer pages are written for each.
    ///     This and the next commits write a quarter of that number each, so that no commit takes long; or twice as
    ///     many as they have set, so that the flush ends.
    ///   - notes: what the transaction stores when it ends. A few clocks go along with that.
    package func finish(_ db: Database, flushingFrom limit: Int, _ notes: CommitNotes) throws {
        defer { (added, isLoaded) = (0, false) }
        if flushing == nil, count >= limit {
            // An earlier flush did not end. A program that commits only a few times would begin it again each time.
            if isLoaded, count - added >= limit { return try flush(db) }
            try write(db)
            let places = try records.withUnsafeBytes { try RecentClocks.newestPlaces(in: $0) }
            flushing = Flush(rest: places[...], end: records.count, row: last)
        }
        try flushSlice(db, max(limit / Self.slicesPerFlush, 2 * added, 2))
        guard records.count > noted else { return }
        guard records.count - written <= maxNewest else { return try write(db) }
        noted = records.count
        notes.add(RecentClocks.newest, blob: Array(records[written...]))
    }

    /// Writes a row of the table, together with the clocks that were waiting for more.
    private func write(_ db: Database) throws {
        guard records.count > written else { return }
        if noted > written { try RecentClocks.deleteNewest(db) }
        records.withUnsafeBytes { append.bind(1, blob: UnsafeRawBufferPointer(rebasing: $0[written...])) }
        try append.run()
        last = db.lastInsertedRowID
        (written, noted) = (records.count, records.count)
    }

    private func flushSlice(_ db: Database, _ size: Int) throws {
        guard var flush = flushing else { return }
        let slice = flush.rest.prefix(size)
        try records.withUnsafeBytes { try RecentClocks.put(db, slice, of: $0) }
        flush.rest = flush.rest.dropFirst(size)
        flushing = flush
        guard flush.rest.isEmpty else { return }
        flushing = nil
        try RecentClocks.forget(db, through: flush.row)
        flushes += 1
        records.removeSubrange(..<flush.end)
        written -= flush.end
        noted -= flush.end
        if last == flush.row { last = 0 }
        try reindex()
    }

    /// Flushes everything, in the caller's transaction.
    package func flush(_ db: Database) throws {
        guard count > 0 else { return }
        try write(db)
        try RecentClocks.flush(db)
        // If there were records, there will be as many again.
        records.removeAll(keepingCapacity: true)
        index.removeAll()
        (count, written, noted, last) = (0, 0, 0, 0)
        flushing = nil
        flushes += 1
    }
}
