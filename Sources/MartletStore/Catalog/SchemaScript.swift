package import GRDB

/// Runs a script that changes the schema, without losing changes: after each statement, catalog and triggers are
/// updated before the next one runs. So a script that adds a column and fills it is captured.
package enum SchemaScript {
    /// Runs the script in the caller's transaction.
    ///
    /// - Parameter request: The tables to track, or whose identity to change, after the script. Without a request,
    ///   tables that the script creates are not tracked.
    /// - Throws: ``/MartletCore/StoreError``, also if foreign keys are broken afterwards that were not broken before.
    @discardableResult
    package static func run(_ db: Database, _ sql: String, attaching request: AttachRequest? = nil) throws
        -> AttachReport
    {
        let violations = try violationCount(db)
        var blind = Set<Int64>()
        let statements = try db.allStatements(sql: sql)
        while let statement = try statements.next() {
            guard try isPartOfTransaction(statement.sql) else { continue }
            let before = try SchemaFollower.version(db)
            var hasDropped = false
            do {
                try db.inSavepoint {
                    try statement.execute()
                    return .commit
                }
            } catch let error as DatabaseError where error.message?.contains("trigger \(InternalName.prefix)") == true {
                // SQLite refuses DROP COLUMN while a trigger names the column.
                try SchemaFollower.dropTriggers(db)
                try db.execute(sql: statement.sql)
                hasDropped = true
            }
            if try SchemaFollower.version(db) != before {
                let found = try SchemaFollower.followTables(
                    db, .init(givesUpMissing: false, resumes: false, audits: false))
                if !hasDropped { blind.formUnion(found) }
            }
        }
        // A table that was recreated under its old name is back by now.
        blind.formUnion(
            try SchemaFollower.followTables(db, .init(givesUpMissing: request == nil, audits: false)))
        let report = try request.map { try Attachment.run(db, $0) } ?? AttachReport()
        // A former identity column may be gone, now that others form the identity.
        if request != nil { try SchemaFollower.followTables(db, .init(audits: false)) }
        if !blind.isEmpty { _ = try Audit.runBlind(db, blind) }
        try checkViolations(db, since: violations)
        return report
    }

    static func checkViolations(_ db: Database, since violations: Int?) throws {
        guard let violations, let now = try violationCount(db), now > violations else { return }
        let tables = try String.fetchAll(
            db, sql: "SELECT DISTINCT \"table\" FROM pragma_foreign_key_check WHERE \"table\" IS NOT NULL ORDER BY 1")
        throw StoreError(
            .invalidArgument,
            """
            After the script, \(now - violations) more foreign keys of \(tables.joined(separator: ", ")) refer to rows \
            that don't exist.
            """,
            hint: "Nothing was changed. Let the script also delete or repair the rows that refer to missing rows.")
    }

    /// Returns the number of rows whose foreign key has no target. Nil if the referenced table is missing or has no
    /// such key.
    static func violationCount(_ db: Database) throws -> Int? {
        do {
            return try Int.fetchOne(db, sql: "SELECT count(*) FROM pragma_foreign_key_check")
        } catch is DatabaseError {
            return nil
        }
    }

    /// Returns false for statements that a script needs only outside of a transaction: the whole script is one.
    private static func isPartOfTransaction(_ sql: String) throws -> Bool {
        switch firstWord(sql) {
        case "BEGIN", "COMMIT", "END": return false
        case let word where ["ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH", "VACUUM"].contains(word):
            throw StoreError(
                .invalidArgument, "The script contains \(word), but it runs in one transaction.",
                hint: "Remove that statement. Nothing was changed.")
        default: return true
        }
    }

    private static func firstWord(_ sql: String) -> String {
        var rest = sql[...]
        while true {
            rest = rest.drop { $0.isWhitespace || $0 == ";" }
            guard let end = TableInspector.comment(rest) else { break }
            rest = rest[end...]
        }
        return rest.prefix { $0.isLetter }.uppercased()
    }
}
