import Foundation
import GRDB

/// A condition on transactions, and their order, as SQL.
package struct HistoryClause {
    /// A condition that is false for the empty transaction at the end of a log whose newest transaction was deleted.
    package static let isShown = "r < id"

    /// Nil means every transaction.
    package var condition: String?
    package var arguments: [Value]
    /// Sort terms that take precedence over the transaction order.
    package var order: [String]
    /// The tokens that the condition was made from. The fetch throws if the history after one of them has been deleted.
    package var tokens: [HistoryToken]

    package init(
        condition: String? = nil, arguments: [Value] = [], order: [String] = [], tokens: [HistoryToken] = []
    ) {
        self.condition = condition
        self.arguments = arguments
        self.order = order
        self.tokens = tokens
    }
}

/// The SQL expressions that a ``HistoryClause`` may use.
package struct HistoryNames {
    /// The ID of the transaction.
    package let id = "s.id"
    package let author = "s.c1"
    /// The name and ID of the process, or NULL.
    package let process = "s.c3"
    /// The time in milliseconds since 1970.
    package let milliseconds = "s.t"
    private let catalog: Catalog

    init(catalog: Catalog) { self.catalog = catalog }

    /// Returns `FROM ... WHERE ...` for the transaction's changes of rows in these tables, under an alias.
    package func changes(of tables: [String], as alias: String) -> String {
        let ids = tables.compactMap { catalog[$0].map { String($0.id) } }.joined(separator: ", ")
        return """
            FROM \(InternalName.log) AS \(alias) WHERE \(alias).id >= s.r AND \(alias).id < s.id \
            AND \(alias).e IN (\(ids)) \
            AND \(alias).k IN (1, 2, 3) AND \(alias).r IS NOT NULL
            """
    }

    /// The ID of a change (`change`), and the integer key of the changed row (`row`).
    package func change(_ alias: String) -> String { "\(alias).id" }
    package func row(_ alias: String) -> String { "\(alias).r" }

    /// Returns SQL that yields one of the expressions, depending on the table of the changed row. NULL for other
    /// tables.
    package func byTable(_ alias: String, _ texts: [(table: String, sql: String)]) -> String {
        let cases = texts.compactMap { table, sql in catalog[table].map { "WHEN \($0.id) THEN \(sql)" } }
        return cases.isEmpty ? "NULL" : "CASE \(alias).e \(cases.joined(separator: " ")) END"
    }

    /// Returns the SQL for the value that a change recorded for a column. NULL if the change recorded none.
    package func recorded(_ alias: String, table: String, column: String) -> String {
        let slot = catalog[table]?.columns.first { $0.name == column }?.slot
        return slot.map { "\(alias).c\($0)" } ?? "NULL"
    }
}

extension Value {
    /// The value for SQLite. References, which no table contains, become NULL.
    var databaseValue: DatabaseValue {
        switch self {
        case .null, .reference: .null
        case .integer(let value): value.databaseValue
        case .real(let value): value.databaseValue
        case .text(let value): value.databaseValue
        case .blob(let bytes), .rawText(let bytes): Data(bytes).databaseValue
        }
    }
}
