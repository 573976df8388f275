import GRDB

/// Tries whether Martlet can write rows of a table at all: its indexes, CHECKs, generated columns and collations may
/// need functions that only the program has which made them.
enum TableProbe {
    /// - Throws: ``/MartletCore/StoreError`` with code `.notTrackable` where SQLite by itself can't.
    static func check(_ db: Database, table: String) throws {
        let statements = try String.fetchAll(
            db,
            sql: """
                SELECT sql FROM main.sqlite_schema WHERE type IN ('table', 'index') AND tbl_name = ? AND sql IS NOT NULL
                ORDER BY type DESC
                """, arguments: [table])
        // A copy without triggers: those don't run where changes are applied, and may call what they like.
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        let copy = try DatabaseQueue(configuration: configuration)
        do {
            try copy.inDatabase { db in
                for statement in statements { try db.execute(sql: statement) }
                _ = try db.makeStatement(sql: "INSERT INTO \(table.quotedName) DEFAULT VALUES")
                _ = try db.makeStatement(sql: "DELETE FROM \(table.quotedName)")
            }
        } catch let error as DatabaseError {
            throw StoreError(
                .notTrackable,
                """
                Martlet can't write to table \(table), so it could not apply remote changes: \
                \(error.message ?? "SQLite error").
                """,
                hint: "Use only what SQLite has built in for its indexes, CHECKs, generated columns and collations.")
        }
    }
}
