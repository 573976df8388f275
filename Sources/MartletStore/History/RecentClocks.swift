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

    /// Returns all clocks that aren't flushed yet, in the order in which they were set.
    package static func all(_ db: Database) throws -> [UInt8] {
        var bytes: [UInt8] = []
        let size = try PreparedStatement(db, "SELECT total(length(clocks)) FROM \(InternalName.recent)")
        bytes.reserveCapacity(try size.first { Int($0.integer(0)) } ?? 0)
        try forEachBlob(db) { bytes.append(contentsOf: $0) }
        return bytes
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
        let bytes = try all(db)
        guard !bytes.isEmpty else { return }
        try bytes.withUnsafeBytes { try put(db, newestPlaces(in: $0), of: $0) }
        try deleteNewest(db)
        try forget(db, through: .max)
    }

    /// Deletes the rows of the table up to this one, which are in the side tables.
    package static func forget(_ db: Database, through row: Int64) throws {
        try db.cachedStatement(sql: "DELETE FROM \(InternalName.recent) WHERE id <= ?").execute(arguments: [row])
        try Meta.set(db, flushCount, (Meta.integer(db, flushCount) ?? 0) + 1)
    }

    package static func deleteNewest(_ db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM \(InternalName.meta) WHERE key = '\(newest)'").execute()
    }

    /// Where a record is in the bytes, and what it is sorted by.
    package struct Place {
        let begin: Int
        let entity: Int64
        /// The first two bytes of the ID, and the next eight: most comparisons need not read the ID. The first value of
        /// an ID begins with its tag and its length, which many IDs have in common.
        let (head, prefix): (UInt64, UInt64)
        let identity: Range<Int>
    }

    /// Returns the places of the newest record of each row, in the order of entity and ID.
    package static func newestPlaces(in bytes: UnsafeRawBufferPointer) throws -> [Place] {
        var places: [Place] = []
        try ClockRecord.forEach(in: bytes) { record in
            let identity = record.identity
            let start = identity.baseAddress.map { $0 - (bytes.baseAddress ?? $0) } ?? 0
            places.append(
                Place(
                    begin: record.place, entity: record.entity, head: number(identity.prefix(2), of: 2),
                    prefix: number(identity.dropFirst(2).prefix(8), of: 8), identity: start..<start + identity.count))
        }
        func compareIDs(_ a: Place, _ b: Place) -> Int {
            compare(
                UnsafeRawBufferPointer(rebasing: bytes[a.identity]),
                UnsafeRawBufferPointer(rebasing: bytes[b.identity]))
        }
        places.sort { a, b in
            if a.entity != b.entity { return a.entity < b.entity }
            if a.head != b.head { return a.head < b.head }
            if a.prefix != b.prefix { return a.prefix < b.prefix }
            let order = compareIDs(a, b)
            // The records of one row in the order in which they were set.
            return order == 0 ? a.begin < b.begin : order < 0
        }
        var newest: [Place] = []
        newest.reserveCapacity(places.count)
        for place in places {
            if let last = newest.last, last.prefix == place.prefix, last.entity == place.entity,
                compareIDs(last, place) == 0
            {
                newest[newest.count - 1] = place
            } else {
                newest.append(place)
            }
        }
        return newest
    }

    /// Returns the bytes as a number that sorts as they do. Missing ones are zeros.
    private static func number(_ bytes: Slice<UnsafeRawBufferPointer>, of count: Int) -> UInt64 {
        var number: UInt64 = 0
        for byte in bytes { number = number << 8 | UInt64(byte) }
        return number << (8 * UInt64(count - bytes.count))
    }

    /// Compares as SQLite compares blobs.
    private static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        guard let first = a.baseAddress, let second = b.baseAddress else { return a.count - b.count }
        let order = Int(memcmp(first, second, min(a.count, b.count)))
        return order == 0 ? a.count - b.count : order
    }

    /// Writes these records to their side tables, in the caller's transaction.
    package static func put(
        _ db: Database, _ places: some Sequence<Place>, of bytes: UnsafeRawBufferPointer
    ) throws {
        var side: (entity: Int64, statements: SideStatements?)?
        for place in places {
            if side?.entity != place.entity {
                side = (place.entity, try SideStatements(db, of: place.entity))
            }
            if let record = ClockRecord(in: bytes, at: place.begin) { try side?.statements?.put(record) }
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
