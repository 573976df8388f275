import GRDB

/// Changes that were in the log, not stamped yet, when their table was dropped. While a table is gone, its columns
/// aren't known, and stamping skips its changes. They are logged again when the table is back, with the times at
/// which they were written. Otherwise no other node would ever get them: the table holds what the log says, so
/// comparing its rows finds nothing.
///
/// Confined to its connection, in the caller's transaction.
enum SkippedChanges {
    /// The part of the log that wasn't stamped yet when a table was dropped.
    private struct Gap: Codable {
        /// The ID of the last stamped change.
        var stamped: Int64
        /// The ID of the last change. Since then, no trigger has logged a change of the table.
        var last: Int64
    }

    private static let key = "skipped_changes"

    private static func all(_ db: Database) throws -> [Int64: Gap] {
        try Meta.text(db, key).map { try Catalog.decode([Int64: Gap].self, $0) } ?? [:]
    }

    private static func set(_ db: Database, _ entity: Int64, _ gap: Gap?) throws {
        var all = try all(db)
        guard gap != nil || all[entity] != nil else { return }
        all[entity] = gap
        try Meta.set(db, key, try Catalog.encode(all))
    }

    /// Records that stamping will skip what is left of an entity's changes. A second call for the same loss changes
    /// nothing.
    static func noteLost(_ db: Database, _ entity: Int64) throws {
        guard try all(db)[entity] == nil else { return }
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        try set(db, entity, Gap(stamped: stamped, last: try db.lastChange()))
    }

    /// Forgets the changes, because they are logged again, or because the entity won't come back.
    static func forget(_ db: Database, _ entity: Int64) throws { try set(db, entity, nil) }

    /// Logs the changes of an entity again that were skipped. To be called before new columns are recorded: the changes
    /// have no values for them.
    ///
    /// Leaves out changes that are not stamped yet: they are about to be stamped anyway. Leaves out remote changes:
    /// they are stamped when they are applied.
    static func logAgain(_ db: Database, _ entity: Int64) throws {
        guard let gap = try all(db)[entity] else { return }
        let end = min(gap.last, try Meta.integer(db, MetaKey.stamped) ?? 0)
        guard gap.stamped < end else { return }
        let columns = try String.fetchAll(
            db, sql: "SELECT name FROM pragma_table_info(?) WHERE name <> 'id'", arguments: [InternalName.log]
        ).joined(separator: ", ")
        try db.execute(
            sql: """
                WITH remote AS MATERIALIZED (
                  SELECT r AS start, id AS mark FROM \(InternalName.log)
                  WHERE e = 0 AND id > ?1 AND (c1 = ?3 OR c4 IS NOT NULL))
                INSERT INTO \(InternalName.log)(\(columns))
                SELECT \(columns) FROM \(InternalName.log) AS l WHERE l.e = ?4 AND l.id > ?1 AND l.id <= ?2
                AND NOT EXISTS (SELECT 1 FROM remote WHERE l.id BETWEEN start AND mark) ORDER BY l.id
                """, arguments: [gap.stamped, end, TransactionAuthor.sync, entity])
    }
}
