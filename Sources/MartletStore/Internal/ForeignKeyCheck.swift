package import GRDB

/// SQLite's own check of foreign keys.
package struct ForeignKeyCheck: Sendable {
    /// The number of foreign-key violations: references to rows that don't exist.
    package var violationCount = 0
    /// Tables with a foreign key that refers to a missing table, or to columns that are not unique, ordered by name.
    /// SQLite can't check these, and refuses some statements on them if foreign keys are enforced.
    package var mismatched: [String] = []

    package static func run(_ db: Database) throws -> ForeignKeyCheck {
        var found = ForeignKeyCheck()
        for table in try TableInspector(db).userTables() {
            do {
                found.violationCount += try Row.fetchAll(db, sql: "PRAGMA main.foreign_key_check(\(table.quotedName))")
                    .count
            } catch let error as DatabaseError
                where error.resultCode == .SQLITE_ERROR && error.message?.contains("foreign key mismatch") == true
            {
                found.mismatched.append(table)
            }
        }
        return found
    }
}
