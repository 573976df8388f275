package import GRDB

/// SQLite's own check of the file.
package enum IntegrityCheck {
    /// - Returns: `ok`, or the first problems. A table that needs a collation or a function of its own program can't be
    ///   checked, here or by any other program. It is skipped, and the rest of the file is checked.
    package static func run(_ db: Database) throws -> String {
        do {
            return try problems(db, "PRAGMA integrity_check(5)")
        } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
            // SQLite can't compile the check. Damage has other codes.
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
            for table in tables {
                do {
                    let found = try problems(db, "PRAGMA integrity_check(\(table.quotedName))")
                    guard found == "ok" else { return found }
                } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {}
            }
            return "ok"
        }
    }

    private static func problems(_ db: Database, _ sql: String) throws -> String {
        try String.fetchAll(db, sql: sql).joined(separator: "; ")
    }
}
