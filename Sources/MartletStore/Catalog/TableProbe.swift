import CMartletSQLite
import GRDB

/// Checks whether Martlet can write rows of a table at all: its indexes, CHECKs, generated columns and collations may
/// need functions that only the program that created them has.
enum TableProbe {
    /// - Throws: ``/MartletCore/StoreError`` with code `.notTrackable` if SQLite alone can't write the table.
    static func check(_ db: Database, table: String) throws {
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
                try compileWrites(db, table)
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

    /// Returns SQLite's message if this connection lacks a function or a collation without which it can't write to the
    /// table. Nil if it can.
    ///
    /// A table that is tracked already may have parts that ``check(_:table:)`` refuses, but that no statement needs.
    static func missingPart(_ db: Database, of table: String) throws -> String? {
        guard let handle = db.sqliteConnection else { return nil }
        let before = martlet_set_triggers(handle, 0)
        defer { if before > 0 { _ = martlet_set_triggers(handle, before) } }
        do {
            try compileWrites(db, table)
        } catch let error as DatabaseError {
            // Not a foreign key that leads nowhere, for instance: rows can be applied all the same.
            return error.message.flatMap { message in
                ["function", "collation sequence"].contains(where: message.contains) ? message : nil
            }
        }
        return nil
    }

    private static func compileWrites(_ db: Database, _ table: String) throws {
        _ = try db.makeStatement(sql: "INSERT INTO \(table.storeTable) DEFAULT VALUES")
        _ = try db.makeStatement(sql: "DELETE FROM \(table.storeTable)")
    }
}
