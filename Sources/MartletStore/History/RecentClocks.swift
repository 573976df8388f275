package import GRDB

/// Clocks that are kept by stable ID, on their way to their side tables.
///
/// A stable ID is mostly a UUID, so that each clock that is set in a side table changes another page of it. The newest ones
/// are appended to one table instead, and put into the side tables many at a time, in the order of their IDs. What a row's
/// clock is, the newest entry here says, else its side table.
package enum RecentClocks {
    /// How often they were put away, in `_martlet_meta`: whoever has a copy of them in memory reads them anew then.
    package static let foldCount = "recent_folds"

    /// Puts all of them into their side tables, in the caller's transaction. Whoever reads or writes side tables of such
    /// entities does this first.
    package static func fold(_ db: Database) throws {
        let entities = try Int64.fetchAll(
            db.cachedStatement(sql: "SELECT DISTINCT entity FROM \(InternalName.recent)"))
        guard !entities.isEmpty else { return }
        for entity in entities where try db.hasTable(InternalName.side(entity)) {
            let side = InternalName.side(entity)
            // Of the rows of a group, SQLite takes the columns from the one that has the greatest id.
            let newest =
                "SELECT ident, hlc, node, attrs, max(id) FROM \(InternalName.recent) WHERE entity = ?1 GROUP BY ident"
            try db.cachedStatement(
                sql: """
                    INSERT INTO \(side)(ident, hlc, node, attrs)
                    SELECT ident, hlc, node, attrs FROM (\(newest)) WHERE hlc IS NOT NULL ORDER BY ident
                    ON CONFLICT(ident) DO UPDATE SET hlc = excluded.hlc, node = excluded.node, attrs = excluded.attrs
                    """
            ).execute(arguments: [entity])
            try db.cachedStatement(
                sql: "DELETE FROM \(side) WHERE ident IN (SELECT ident FROM (\(newest)) WHERE hlc IS NULL)"
            ).execute(arguments: [entity])
        }
        try db.cachedStatement(sql: "DELETE FROM \(InternalName.recent)").execute()
        try Meta.set(db, foldCount, (Meta.integer(db, foldCount) ?? 0) + 1)
    }
}
