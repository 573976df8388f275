package import GRDB
package import MartletCore
import MartletStore

/// The kind of a conflict.
public enum ConflictKind: String, Sendable, Codable, CaseIterable {
    /// Two nodes set one attribute without knowing of each other. The later value won.
    case attribute
    /// A row was deleted while another node changed it. The delete won.
    case deleted
    /// Two rows claimed one unique key. One is parked.
    case unique
}

/// Records what merging overruled, so that a person can see and re-apply it.
package struct ConflictJournal {
    package let db: Database
    package let context: TableContext

    package static func count(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM _martlet_conflicts") ?? 0
    }

    package static func noteReapplied(_ db: Database, _ id: Int64, at now: Int64) throws {
        try db.execute(sql: "UPDATE _martlet_conflicts SET reapplied = ? WHERE id = ?", arguments: [now, id])
    }

    // MARK: Retention

    /// The most entries that one SQLite transaction deletes. Other writers wait for it.
    private static let batch = 1000
    /// What an entry takes, in bytes.
    private static let size = "64 + length(ident) + coalesce(length(CAST(value AS BLOB)), 0)"

    /// Returns the number of the last entry that was recorded before this time. Those before it are older, whatever the
    /// wall clock was then. Zero if there is none.
    ///
    /// - Parameters:
    ///   - time: In milliseconds since 1970.
    ///   - now: The present time. Entries from after it say nothing.
    package static func end(_ db: Database, before time: Int64, now: Int64) throws -> Int64 {
        let next = try Int64.fetchOne(
            db, sql: "SELECT id FROM _martlet_conflicts WHERE since BETWEEN ? AND ? ORDER BY id LIMIT 1",
            arguments: [time, now])
        return try Int64.fetchOne(
            db, sql: "SELECT id FROM _martlet_conflicts WHERE since < ? AND id < ? ORDER BY id DESC LIMIT 1",
            arguments: [time, next ?? .max]) ?? 0
    }

    /// Returns the number of the newest entry that does not fit into this size beside the newer ones. Zero if all fit.
    package static func end(_ db: Database, keepingBytes bytes: Int64) throws -> Int64 {
        let read = try PreparedStatement(db, "SELECT id, \(size) FROM _martlet_conflicts ORDER BY id DESC")
        var rest = bytes
        while try read.step() {
            rest -= read.integer(1)
            if rest < 0 { return read.integer(0) }
        }
        return 0
    }

    /// Returns what the entries after one take, in bytes.
    package static func bytes(_ db: Database, after id: Int64) throws -> Int64 {
        try Int64.fetchOne(
            db, sql: "SELECT sum(\(size)) FROM _martlet_conflicts WHERE id > ?", arguments: [id]) ?? 0
    }

    /// Returns the numbers of the oldest and of the newest entry. Nil if there is none.
    package static func ends(_ db: Database) throws -> ClosedRange<Int64>? {
        let ends = try Row.fetchOne(
            db,
            sql: """
                SELECT (SELECT min(id) FROM _martlet_conflicts) AS first,
                (SELECT max(id) FROM _martlet_conflicts) AS last
                """)
        guard let first = ends?["first"] as Int64?, let last = ends?["last"] as Int64? else { return nil }
        return first...last
    }

    /// Deletes some of the oldest entries, up to one. The newest entry of all stays, so that no number is used twice.
    package static func prune(_ db: Database, through end: Int64) throws {
        try db.execute(
            sql: """
                DELETE FROM _martlet_conflicts WHERE id IN (
                  SELECT id FROM _martlet_conflicts
                  WHERE id <= ? AND id < (SELECT max(id) FROM _martlet_conflicts) ORDER BY id LIMIT ?)
                """, arguments: [end, batch])
    }

    // MARK: Recording

    package func record(
        _ kind: ConflictKind, _ table: EntityTable, _ identity: StableID, slot: Int?, value: Value, stamp: Stamp,
        winner: Stamp
    ) throws {
        let insert = try context.statement(
            db,
            """
            INSERT INTO _martlet_conflicts(entity, ident, slot, kind, value, reference, hlc, node,
            winner_hlc, winner_node, since)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            """)
        insert.bind(1, table.entity.id)
        insert.bind(2, blob: identity.bytes)
        insert.bind(3, optional: slot.map { Int64($0) })
        insert.bind(4, text: kind.rawValue)
        insert.bind(5, kept: value)
        insert.bind(7, stamp.time.stored)
        insert.bind(8, try context.nodes.number(db, stamp.node))
        insert.bind(9, winner.time.stored)
        insert.bind(10, try context.nodes.number(db, winner.node))
        insert.bind(11, context.now())
        try insert.run()
    }
}
