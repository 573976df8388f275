package import GRDB

/// SQLite's own check of foreign keys.
package struct ForeignKeyCheck: Sendable {
    /// How many rows refer to rows that don't exist.
    package var violationCount = 0
    /// Tables with a foreign key that refers to no table, or to columns that are not unique, in the order of their
    /// names. SQLite can't check those, and refuses some statements on them where foreign keys are enforced.
    package var mismatched: [String] = []

    package static func run(_ db: Database) throws -> ForeignKeyCheck {
        var found = ForeignKeyCheck()
        for table in try TableInspector(db).userTables() {
            do {
                found.violationCount += try Row.fetchAll(db, sql: "PRAGMA foreign_key_check(\(table.quotedName))").count
            } catch let error as DatabaseError
                where error.resultCode == .SQLITE_ERROR && error.message?.contains("foreign key mismatch") == true
            {
                found.mismatched.append(table)
            }
        }
        return found
    }
}
