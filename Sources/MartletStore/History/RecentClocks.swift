package import GRDB
import Glibc

/// Clocks that are stored by stable ID, before they are flushed to their side tables.
///
/// A stable ID is usually a UUID, so each clock that is set in a side table would change a different page. Instead, the
/// newest clocks are appended to one table, with all clocks of a transaction in one blob, and flushed to the side
/// tables many at a time, in the order of their IDs. The clocks of small transactions wait in `_martlet_meta`, on a
/// page that each transaction changes anyway, until there are enough for a row of the table. The newest record here is
/// the row's clock; without one, its side table has it.
package enum RecentClocks {
    /// The number of flushes, in `_martlet_meta`. A connection with a copy of the clocks in memory reads them again
    /// when it changes.
    package static let flushCount = "recent_folds"
    /// The newest clocks, in `_martlet_meta`. They follow all those in the table.
    package static let newest = "recent_clocks"

    /// Returns the maximum size of the clocks in `_martlet_meta`, in bytes. A longer value does not stay on its page.
    package static func maxNewest(_ db: Database) throws -> Int {
        let pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
        // The part of a row that SQLite keeps on the page in a table without rowids
        // (https://sqlite.org/fileformat2.html, section 1.6), less the key and the row's header. At most 896, even with
        // large pages, because each commit copies it.
        return min(896, max(0, (pageSize - 12) * 64 / 255 - 23 - 64))
    }

    /// Calls `body` with each clock that isn't flushed yet, in the order in which they were set. The records are valid
    /// only in `body`.
    package static func forEach(_ db: Database, _ body: (ClockRecord) throws -> Void) throws {
        try forEachBlob(db) { try ClockRecord.forEach(in: $0, body) }
    }

    private static func forEachBlob(_ db: Database, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let read = try PreparedStatement(db, "SELECT clocks FROM \(InternalName.recent) ORDER BY id")
        while try read.step() { try read.withBlob(0, body) }
        let newest = try PreparedStatement(db, "SELECT value FROM \(InternalName.meta) WHERE key = '\(newest)'")
        while try newest.step() { try newest.withBlob(0, body) }
    }

    /// Flushes all clocks to their side tables, in the caller's transaction. Call this before reading or writing the
    /// side tables of such entities.
    package static func flush(_ db: Database) throws {
        var bytes: [UInt8] = []
        let size = try PreparedStatement(db, "SELECT total(length(clocks)) FROM \(InternalName.recent)")
        bytes.reserveCapacity(try size.first { Int($0.integer(0)) } ?? 0)
        try forEachBlob(db) { bytes.append(contentsOf: $0) }
        guard !bytes.isEmpty else { return }
        try bytes.withUnsafeBytes { bytes in
            var records: [ClockRecord] = []
            try ClockRecord.forEach(in: bytes) { records.append($0) }
            records.sort(by: isBefore)
            try put(db, records)
        }
        try db.cachedStatement(sql: "DELETE FROM \(InternalName.recent)").execute()
        try deleteNewest(db)
        try Meta.set(db, flushCount, (Meta.integer(db, flushCount) ?? 0) + 1)
    }

    package static func deleteNewest(_ db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM \(InternalName.meta) WHERE key = '\(newest)'").execute()
    }

    /// Orders records by entity and ID, and those of one row in the order in which they were set: all are in one array
    /// of bytes.
    private static func isBefore(_ a: ClockRecord, _ b: ClockRecord) -> Bool {
        if a.entity != b.entity { return a.entity < b.entity }
        let order = compare(a.identity, b.identity)
        if order != 0 { return order < 0 }
        guard let first = a.identity.baseAddress, let second = b.identity.baseAddress else { return false }
        return first < second
    }

    /// Compares as SQLite compares blobs.
    private static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        guard let first = a.baseAddress, let second = b.baseAddress else { return a.count - b.count }
        let order = Int(memcmp(first, second, min(a.count, b.count)))
        return order == 0 ? a.count - b.count : order
    }

    private static func put(_ db: Database, _ records: [ClockRecord]) throws {
        var side: (entity: Int64, statements: SideStatements?)?
        for (index, record) in records.enumerated() {
            if index + 1 < records.count, records[index + 1].entity == record.entity,
                compare(records[index + 1].identity, record.identity) == 0
            {
                continue
            }
            if side?.entity != record.entity {
                side = (record.entity, try SideStatements(db, of: record.entity))
            }
            try side?.statements?.put(record)
        }
    }

    private struct SideStatements {
        let set: PreparedStatement
        let remove: PreparedStatement

        /// Nil if the entity no longer has a side table.
        init?(_ db: Database, of entity: Int64) throws {
            let name = InternalName.side(entity)
            guard try db.hasTable(name) else { return nil }
            set = try PreparedStatement(
                db,
                """
                INSERT INTO \(name)(ident, hlc, node, attrs) VALUES (?1, ?2, ?3, ?4) ON CONFLICT(ident)
                DO UPDATE SET hlc = excluded.hlc, node = excluded.node, attrs = excluded.attrs
                """)
            remove = try PreparedStatement(db, "DELETE FROM \(name) WHERE ident = ?1")
        }

        func put(_ record: ClockRecord) throws {
            guard let clock = record.clock else {
                remove.bind(1, blob: record.identity)
                return try remove.run()
            }
            set.bind(1, blob: record.identity)
            set.bind(2, clock.time)
            set.bind(3, clock.node)
            if clock.attributes.isEmpty { set.bindNull(4) } else { set.bind(4, blob: clock.attributes) }
            try set.run()
        }
    }
}
