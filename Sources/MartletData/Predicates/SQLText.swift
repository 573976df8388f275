import MartletStore

/// SQL with the values of its parameters, in their order.
struct SQLText {
    var sql: String
    var arguments: [Value] = []

    init(_ sql: String, _ arguments: [Value] = []) {
        self.sql = sql
        self.arguments = arguments
    }

    /// Replaces each `@` with the next text.
    static func format(_ pattern: String, _ parts: SQLText...) -> SQLText {
        var result = SQLText("")
        var rest = parts[...]
        for character in pattern {
            if character == "@", let next = rest.popFirst() {
                result.sql += next.sql
                result.arguments += next.arguments
            } else {
                result.sql.append(character)
            }
        }
        return result
    }

    static func joined(_ parts: [SQLText], _ separator: String) -> SQLText {
        SQLText(parts.map(\.sql).joined(separator: separator), parts.flatMap(\.arguments))
    }

    /// Like ``joined(_:_:)``, but as a tree: SQLite limits the depth of an expression, and a chain is deep.
    static func balanced(_ parts: [SQLText], _ separator: String) -> SQLText {
        guard parts.count > 8 else { return joined(parts, separator) }
        let middle = parts.count / 2
        let halves = [Array(parts[..<middle]), Array(parts[middle...])]
        return joined(halves.map { SQLText.format("(@)", balanced($0, separator)) }, separator)
    }
}

/// One level of a query: a table, and the tables joined to it.
final class QueryScope {
    final class Counter {
        private var count = 0
        func next() -> String {
            defer { count += 1 }
            return "t\(count)"
        }
    }

    let counter: Counter
    private(set) var joins: [SQLText] = []
    private var aliases: [String: String] = [:]
    /// The joined rows, by alias.
    private var rows: [String: String] = [:]

    init(_ counter: Counter) { self.counter = counter }

    /// The alias for a row of a table, which is joined once for each path that leads to it.
    func alias(_ table: TableLayout, _ row: SQLText) -> String {
        let way = "\(table.name) \(row.sql)"
        if row.arguments.isEmpty, let known = aliases[way] { return known }
        let alias = counter.next()
        aliases[way] = alias
        if row.arguments.isEmpty { rows[alias] = row.sql }
        joins.append(.format(" LEFT JOIN \(table.name.quotedName) \(alias) ON \(alias).\(TableLayout.key) = @", row))
        return alias
    }

    /// The row that a column is read from, if its table is joined.
    func row(of column: String) -> String? { rows[String(column.prefix { $0 != "." })] }
}

/// The translation of a part of a predicate.
enum SQLTerm {
    case scalar(SQLText, isColumn: Bool)
    /// The row of a model, as its identifier.
    case identifier(SQLText, of: EntityLayout)
    case constant(Any)
    case model(ModelTerm)
    case collection(CollectionTerm)
    case history(HistoryTerm)
    case range(lower: SQLText, upper: SQLText, isClosed: Bool)

    static func expression(_ text: SQLText, identifying entity: EntityLayout? = nil) -> SQLTerm {
        if let entity { return .identifier(text, of: entity) }
        return .scalar(text, isColumn: false)
    }

    /// The entity of the model that this identifies. Nil for any other term.
    var identified: EntityLayout? { if case .identifier(_, let entity) = self { entity } else { nil } }

    /// Returns true for a column that is NULL if this is: the same column, and those of this row and of the rows that
    /// it leads to. In an expression on this, a column may as well belong to another row.
    func decides(_ column: SQLText) -> Bool {
        switch self {
        case .scalar(let text, _), .identifier(let text, _): return column.sql == text.sql
        case .model(let model):
            var next: String? = column.sql
            while let sql = next {
                if sql == model.row.sql || model.knownAlias.map({ sql.hasPrefix("\($0).") }) == true { return true }
                next = model.scope.row(of: sql)
            }
            return false
        case .constant, .collection, .history, .range: return false
        }
    }
}

/// A row of a model's table.
struct ModelTerm {
    var row: SQLText
    var layout: EntityLayout
    var scope: QueryScope
    /// Nil until a column of the row is accessed.
    var knownAlias: String?

    var alias: String { knownAlias ?? scope.alias(layout.table, row) }

    func column(_ index: Int) -> SQLText { SQLText("\(alias).\(layout.table.columns[index].name.quotedName)") }

    /// The SQL condition that the row belongs to an entity or one of its subentities.
    func isKind(of other: EntityLayout) -> SQLText {
        guard other.table === layout.table else { return SQLText("0") }
        guard other.table.hasTypeColumn, other.superlayout != nil else {
            return SQLText("(\(row.sql) IS NOT NULL)", row.arguments)
        }
        let names = other.family.map(\.name.quotedText).joined(separator: ", ")
        return SQLText("(\(alias).\(TableLayout.type) IN (\(names)))")
    }
}

/// The rows in a to-many relationship.
struct CollectionTerm {
    var link: Link
    var owner: ModelTerm
    /// Conditions on an element.
    var filters: [(PredicateTranslator, ModelTerm) throws -> SQLText] = []
}
