import Foundation
import GRDB

/// A condition on transactions, and an order of them, in SQL.
package struct HistoryClause {
    /// False of the transaction without changes that ends a log whose newest one was deleted.
    package static let isShown = "r < id"

    /// Absent: every transaction.
    package var condition: String?
    package var arguments: [Value]
    /// Before the order of the transactions themselves.
    package var order: [String]
    /// Tokens that the condition was made of: the fetch throws where what follows one of them has been deleted.
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

/// What the SQL of a ``HistoryClause`` may name.
package struct HistoryNames {
    /// Columns of the transaction.
    package let id = "s.id"
    package let author = "s.c1"
    /// Name and number, or NULL.
    package let process = "s.c3"
    /// Since 1970.
    package let milliseconds = "s.t"
    private let catalog: Catalog

    init(catalog: Catalog) { self.catalog = catalog }

    /// `FROM ... WHERE` the transaction's changes of rows in these tables, under an alias.
    package func changes(of tables: [String], as alias: String) -> String {
        let ids = tables.compactMap { catalog[$0].map { String($0.id) } }.joined(separator: ", ")
        return """
            FROM \(InternalName.log) AS \(alias) WHERE \(alias).id >= s.r AND \(alias).id < s.id AND \(alias).e IN (\(ids)) \
            AND \(alias).k IN (1, 2, 3) AND \(alias).r IS NOT NULL
            """
    }

    /// The number of a change, and the row that was changed.
    package func change(_ alias: String) -> String { "\(alias).id" }
    package func row(_ alias: String) -> String { "\(alias).r" }

    /// One text for each table, where the change is of a row in it. NULL for other tables.
    package func byTable(_ alias: String, _ texts: [(table: String, sql: String)]) -> String {
        let cases = texts.compactMap { table, sql in catalog[table].map { "WHEN \($0.id) THEN \(sql)" } }
        return cases.isEmpty ? "NULL" : "CASE \(alias).e \(cases.joined(separator: " ")) END"
    }

    /// What a change recorded of a column. NULL where it didn't.
    package func recorded(_ alias: String, table: String, column: String) -> String {
        let slot = catalog[table]?.columns.first { $0.name == column }?.slot
        return slot.map { "\(alias).c\($0)" } ?? "NULL"
    }
}

extension Value {
    /// References stand in no table: NULL.
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
