package import GRDB

/// SQLite's own check of the file.
package enum IntegrityCheck {
    /// - Returns: `ok`, or the first problems. An index whose collation exists only in its own program can't be read,
    ///   here or by any other program. Its table is skipped, and the rest of the file is checked.
    package static func run(_ db: Database) throws -> String {
        do {
            return try problems(db, "PRAGMA integrity_check(5)")
        } catch let error as DatabaseError where error.extendedResultCode.rawValue == missingCollation {
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
            for table in tables {
                do {
                    let found = try problems(db, "PRAGMA integrity_check(\(table.quotedName))")
                    guard found == "ok" else { return found }
                } catch let error as DatabaseError where error.extendedResultCode.rawValue == missingCollation {}
            }
            return "ok"
        }
    }

    /// SQLITE_ERROR_MISSING_COLLSEQ
    private static let missingCollation: Int32 = 257

    private static func problems(_ db: Database, _ sql: String) throws -> String {
        try String.fetchAll(db, sql: sql).joined(separator: "; ")
    }
}
