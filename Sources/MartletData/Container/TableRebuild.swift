import GRDB
import MartletStore

/// Makes a table anew for a change that SQLite has no `ALTER TABLE` for. Rows keep their `_id`, numbers that were given
/// once aren't given again, and what others added to the table (columns, indexes, triggers) stays.
///
/// Run without foreign keys being enforced, and without capture: the rows stay the same.
struct TableRebuild {
    let db: Database
    let table: String
    /// Columns that are declared in another way, and how.
    var definitions: [String: String] = [:]
    /// The SQL of a column's values, where they aren't what they were.
    var values: [String: String] = [:]

    /// Rows that are copied at a time.
    private static let batchSize: Int64 = 20_000

    /// - Parameter progress: is told how many rows are done, and of how many.
    func run(progress: (Int, Int) -> Void) throws {
        let copy = "\(InternalName.prefix)rebuild_\(table)"
        let sql = try String.fetchOne(
            db, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?", arguments: [table])
        guard let sql, var text = TableText(sql) else { throw unreadable }
        for (column, definition) in definitions {
            guard text.replace(column, with: definition) else { throw unreadable }
        }
        let others = try String.fetchAll(
            db,
            sql: """
                SELECT sql FROM main.sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL
                AND name NOT LIKE '\\_martlet\\_%' ESCAPE '\\' ORDER BY rowid
                """, arguments: [table])
        let last = try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [table])
        try db.execute(sql: text.sql(named: copy))
        try copyRows(to: copy, progress: progress)
        try db.execute(sql: "DROP TABLE \(table.quotedName)")
        try rename(copy)
        try db.execute(sql: "DELETE FROM sqlite_sequence WHERE name = ?", arguments: [table])
        if let last {
            try db.execute(sql: "INSERT INTO sqlite_sequence(name, seq) VALUES (?, ?)", arguments: [table, last])
        }
        for sql in others { try db.execute(sql: sql) }
    }

    private var unreadable: SwiftDataError {
        .incompatibleStore.because(
            "The declaration of table \(table) can't be parsed. Recreate the table with `martlet alter`.")
    }

    private func copyRows(to copy: String, progress: (Int, Int) -> Void) throws {
        let key = TableLayout.key
        let columns = try String.fetchAll(
            db, sql: "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE hidden = 0 ORDER BY cid", arguments: [table])
        let list = columns.map(\.quotedName).joined(separator: ", ")
        let read = columns.map { values[$0] ?? $0.quotedName }.joined(separator: ", ")
        let total = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table.quotedName)") ?? 0
        // Batches by key, so that no sorting and no offset is paid for.
        let range = try PreparedStatement(
            db,
            """
            SELECT count(*), max(\(key)) FROM
            (SELECT \(key) FROM \(table.quotedName) WHERE \(key) > ?1 ORDER BY \(key) LIMIT \(Self.batchSize))
            """)
        let insert = try PreparedStatement(
            db,
            """
            INSERT INTO \(copy.quotedName)(\(list)) SELECT \(read) FROM \(table.quotedName)
            WHERE \(key) > ?1 AND \(key) <= ?2 ORDER BY \(key)
            """)
        var done = 0
        var after = Int64.min
        progress(0, total)
        while true {
            range.bind(1, after)
            let next = try range.first { ($0.integer(0), $0.optionalInteger(1)) }
            guard let (count, last) = next, let last else { break }
            insert.bind(1, after)
            insert.bind(2, last)
            try insert.run()
            after = last
            done += Int(count)
            progress(done, total)
        }
    }

    private func rename(_ copy: String) throws {
        // Else SQLite looks for mistakes in views and triggers that name the table, which isn't there at this moment.
        let isLegacy = try Bool.fetchOne(db, sql: "PRAGMA legacy_alter_table") ?? false
        try db.execute(sql: "PRAGMA legacy_alter_table = ON")
        defer { if !isLegacy { try? db.execute(sql: "PRAGMA legacy_alter_table = OFF") } }
        try db.execute(sql: "ALTER TABLE \(copy.quotedName) RENAME TO \(table.quotedName)")
    }
}
