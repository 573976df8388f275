import GRDB
import MartletStore

/// Rebuilds a table for a change that SQLite has no `ALTER TABLE` for. Rows keep their `_id`, deleted rows' numbers
/// aren't reused, and everything that others added to the table (columns, indexes, triggers) is kept.
///
/// Run it without enforcement of foreign keys and without capture: the rows stay the same.
struct TableRebuild {
    let db: Database
    let table: String
    /// New definitions by column.
    var definitions: [String: String] = [:]
    /// The SQL of the values of columns whose values change.
    var values: [String: String] = [:]

    /// The number of rows that are copied at a time.
    private static let batchSize: Int64 = 20_000

    /// - Parameter progress: receives the number of rows that are done, and the total.
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
                SELECT sql FROM main.sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger')
                AND sql IS NOT NULL
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
        // Batches by key avoid both sorting and an offset.
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
        // Otherwise SQLite would report errors in views and triggers that refer to the table, which doesn't exist at
        // this moment.
        let isLegacy = try Bool.fetchOne(db, sql: "PRAGMA legacy_alter_table") ?? false
        try db.execute(sql: "PRAGMA legacy_alter_table = ON")
        defer { if !isLegacy { try? db.execute(sql: "PRAGMA legacy_alter_table = OFF") } }
        try db.execute(sql: "ALTER TABLE \(copy.quotedName) RENAME TO \(table.quotedName)")
    }
}
