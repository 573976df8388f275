package import Foundation
import GRDB

/// A transaction with the number of its changes, without their values.
package struct TransactionSummary: Sendable, Equatable {
    package struct Count: Sendable, Equatable {
        /// The table's name today. Nil if the table is no longer tracked.
        package var entity: String?
        package var kind: ChangeKind
        package var count: Int
    }

    package var id: Int64
    package var author: String?
    package var timestamp: Date
    /// The name of the origin node, if the transaction was applied from another node that has a name.
    package var origin: String?
    package var isRemote: Bool
    package var changes: [Count]
    /// Whether the transaction has more changes than were counted.
    package var isCut: Bool
}

extension Store {
    /// Returns the newest transactions, newest first. Reads a bounded part of the log, however large they are.
    ///
    /// - Parameter changesEach: The maximum number of changes to count in each transaction.
    package func recentTransactions(limit: Int, changesEach: Int = 1000) throws -> [TransactionSummary] {
        try read { db in
            let names = Dictionary(uniqueKeysWithValues: try Catalog.load(db).entities.map { ($0.id, $0.name) })
            let marks = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, r, t, c1, c4, c6, c8 FROM \(InternalName.log) WHERE e = 0 AND \(HistoryClause.isShown)
                    ORDER BY id DESC LIMIT ?
                    """, arguments: [limit])
            return try marks.map { mark in
                let id: Int64 = mark["id"]
                let rows = try Row.fetchAll(
                    db,
                    sql: """
                        SELECT e, k, count(*) AS n FROM (
                            SELECT e, k FROM \(InternalName.log) WHERE id >= ?1 AND id < ?2 AND e <> 0 AND k <> ?3
                            LIMIT ?4)
                        GROUP BY e, k ORDER BY e, k
                        """, arguments: [mark["r"] as Int64, id, ChangeKind.Mark.before, changesEach + 1])
                let counts = rows.compactMap { row in
                    ChangeKind(code: row["k"]).map {
                        TransactionSummary.Count(entity: names[row["e"]], kind: $0, count: row["n"])
                    }
                }
                let isRemote = (mark["c4"] as Data?) != nil
                return TransactionSummary(
                    id: id, author: isRemote ? mark["c6"] : mark["c1"],
                    timestamp: HistoryReader.date(mark["t"]), origin: mark["c8"],
                    isRemote: isRemote, changes: counts, isCut: counts.reduce(0) { $0 + $1.count } > changesEach)
            }
        }
    }
}
