import GRDB

/// A reader of the history, and what its cursor keeps from being deleted.
package struct CursorReport: Sendable, Equatable {
    package var cursor: HistoryCursor
    /// The transactions that the reader has not passed.
    package var transactions: Int64
    /// The size of those in the file, estimated from the average size of the log's rows.
    package var bytes: Int64
}

extension Store {
    /// Returns the registered cursors with what each keeps, the one that is furthest behind first. Reads the whole log,
    /// so don't call it every second.
    package func cursorReports() throws -> [CursorReport] {
        let cursors = try cursors()
        return try read { db in
            let size = Double(try Pruner.logBytes(db))
            let first = try Int64.fetchOne(db, sql: "SELECT min(id) FROM \(InternalName.log)") ?? 0
            let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0
            return try cursors.map { cursor in
                let position = cursor.token.transaction
                let count = try Int64.fetchOne(
                    db,
                    sql: """
                        SELECT count(*) FROM \(InternalName.log) WHERE e = 0 AND \(HistoryClause.isShown) AND id > ?
                        """, arguments: [position])
                // A cursor may be before everything that is left.
                let share = Double(max(0, last - max(position, first - 1))) / Double(max(1, last - first + 1))
                return CursorReport(cursor: cursor, transactions: count ?? 0, bytes: Int64(size * share))
            }.sorted { $0.cursor.token < $1.cursor.token }
        }
    }
}
