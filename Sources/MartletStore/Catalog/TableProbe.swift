import GRDB

/// Checks whether Martlet can write rows of a table at all: its indexes, CHECKs, generated columns and collations may
/// need functions that only the program that created them has.
enum TableProbe {
    /// - Throws: ``/MartletCore/StoreError`` with code `.notTrackable` if SQLite alone can't write the table.
    static func check(_ db: Database, table: String) throws {
        guard let problem = try problem(db, table: table) else { return }
        throw StoreError(
            .notTrackable, "Martlet can't write to table \(table), so it could not apply remote changes: \(problem).",
            hint: hint)
    }

    static let hint = "Use only what SQLite has built in for its indexes, CHECKs, generated columns and collations."

    /// Returns why SQLite alone can't write the table. Nil if it can.
    static func problem(_ db: Database, table: String) throws -> String? {
        let statements = try String.fetchAll(
            db,
            sql: """
                SELECT sql FROM main.sqlite_schema WHERE type IN ('table', 'index') AND tbl_name = ? AND sql IS NOT NULL
                ORDER BY type DESC
                """, arguments: [table])
        // Uses a copy without triggers: they don't run when changes are applied, and may call any function.
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        // SQLite accepts them in a schema that it reads from a file.
        configuration.acceptsDoubleQuotedStringLiterals = true
        let copy = try DatabaseQueue(configuration: configuration)
        do {
            try copy.inDatabase { db in
                for statement in statements { try db.execute(sql: statement) }
                _ = try db.makeStatement(sql: "INSERT INTO \(table.quotedName) DEFAULT VALUES")
                _ = try db.makeStatement(sql: "DELETE FROM \(table.quotedName)")
            }
        } catch let error as DatabaseError {
            return error.message ?? "SQLite error"
        }
        return nil
    }
}
