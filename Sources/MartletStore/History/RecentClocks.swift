package import GRDB
import Glibc

/// Clocks that are kept by stable ID, on their way to their side tables.
///
/// A stable ID is mostly a UUID, so that each clock that is set in a side table changes another page of it. The newest
/// ones are appended to one table instead, all those of a transaction in one blob, and put into the side tables many at
/// a time, in the order of their IDs. Those of small transactions wait in `_martlet_meta`, on a page that each of them
/// changes anyway, until there are enough for a row of the table. What a row's clock is, the newest record here says,
/// else its side table.
package enum RecentClocks {
    /// How often they were put away, in `_martlet_meta`: whoever has a copy of them in memory reads them anew then.
    package static let foldCount = "recent_folds"
    /// The newest of them, in `_martlet_meta`: they come after all of the table.
    package static let newest = "recent_clocks"

    /// How many bytes of clocks wait in `_martlet_meta` at most: a value that is longer does not stay on its page.
    package static func maxNewest(_ db: Database) throws -> Int {
        let pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
        // What SQLite keeps of a row on a page of a table without rowids (https://sqlite.org/fileformat2.html, section
        // 1.6), less the key and the row's header. Each commit copies it: not more on large pages.
        return min(896, max(0, (pageSize - 12) * 64 / 255 - 23 - 64))
    }

    /// All that are here, in the order in which they were set. The records are valid in `body`.
    package static func forEach(_ db: Database, _ body: (ClockRecord) throws -> Void) throws {
        try forEachBlob(db) { try ClockRecord.forEach(in: $0, body) }
    }

    private static func forEachBlob(_ db: Database, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let read = try PreparedStatement(db, "SELECT clocks FROM \(InternalName.recent) ORDER BY id")
        while try read.step() { try read.withBlob(0, body) }
        let newest = try PreparedStatement(db, "SELECT value FROM \(InternalName.meta) WHERE key = '\(newest)'")
        while try newest.step() { try newest.withBlob(0, body) }
    }

    /// Puts all of them into their side tables, in the caller's transaction. Whoever reads or writes side tables of
    /// such entities does this first.
    package static func fold(_ db: Database) throws {
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
        try Meta.set(db, foldCount, (Meta.integer(db, foldCount) ?? 0) + 1)
    }

    package static func deleteNewest(_ db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM \(InternalName.meta) WHERE key = '\(newest)'").execute()
    }

    /// By entity and ID, those of one row in the order in which they were set: they are in one array of bytes.
    private static func isBefore(_ a: ClockRecord, _ b: ClockRecord) -> Bool {
        if a.entity != b.entity { return a.entity < b.entity }
        let order = compare(a.identity, b.identity)
        if order != 0 { return order < 0 }
        guard let first = a.identity.baseAddress, let second = b.identity.baseAddress else { return false }
        return first < second
    }

    /// As SQLite compares blobs.
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

        /// Nil where the entity has no side table any more.
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
