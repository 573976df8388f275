import MartletStore

/// A part of a predicate that can be translated to SQL.
protocol SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm
}

/// Translates a predicate to SQL.
final class PredicateTranslator {
    let layout: SchemaLayout
    let counter = QueryScope.Counter()
    /// The row of an identifier, or nil if it belongs to another store or was never saved.
    private let row: (PersistentIdentifier, EntityLayout?) -> Int64?
    /// Nil if the predicate is over models.
    private let history: HistoryScope?
    private var variables: [PredicateExpressions.VariableID: SQLTerm] = [:]

    init(_ layout: SchemaLayout, row: @escaping (PersistentIdentifier, EntityLayout?) -> Int64?) {
        self.layout = layout
        self.row = row
        history = nil
    }

    init(_ layout: SchemaLayout, history: HistoryScope) {
        self.layout = layout
        self.history = history
        row = { _, _ in nil }
    }

    var historyScope: HistoryScope {
        get throws {
            guard let history else { throw SwiftDataError.unsupportedPredicate.because("It is not on the history.") }
            return history
        }
    }

    /// The SQL condition on a transaction.
    func condition<T>(_ predicate: Predicate<T>) throws -> SQLText {
        try with(predicate.variable.key, .history(.transaction)) { try condition(predicate.expression) }
    }

    func condition<T>(_ predicate: Predicate<T>, on model: ModelTerm) throws -> SQLText {
        try with(predicate.variable.key, .model(model)) { try condition(predicate.expression) }
    }

    func with<R>(_ variable: PredicateExpressions.VariableID, _ term: SQLTerm, _ body: () throws -> R) rethrows -> R {
        let outer = variables[variable]
        variables[variable] = term
        defer { variables[variable] = outer }
        return try body()
    }

    func variable(_ key: PredicateExpressions.VariableID) throws -> SQLTerm {
        guard let term = variables[key] else {
            throw SwiftDataError.unsupportedPredicate.because("A variable of another predicate is used.")
        }
        return term
    }

    func term(_ expression: any PredicateExpression) throws -> SQLTerm {
        guard let translatable = expression as? any SQLTranslatable else { throw Self.unsupported(expression) }
        return try translatable.translate(self)
    }

    static func unsupported(_ expression: any PredicateExpression) -> SwiftDataError {
        .unsupportedPredicate.because("There is no SQL for \(shortName(type(of: expression))).")
    }

    /// The name of the outermost type: those of its parts would fill a page.
    private static func shortName(_ type: Any.Type) -> String {
        String(String(describing: type).prefix { $0 != "<" })
    }

    // MARK: Values

    func scalar(_ expression: any PredicateExpression) throws -> SQLText {
        try scalar(try term(expression), of: expression)
    }

    func scalar(_ term: SQLTerm, of expression: any PredicateExpression) throws -> SQLText {
        switch term {
        case .scalar(let text, _), .identifier(let text, _): return text
        case .model(let model): return model.row
        case .constant(let value): return SQLText("?", [try stored(value)])
        case .history(.identifier(let alias)): return SQLText(try historyScope.identifier(alias))
        case .collection, .range, .history: throw Self.unsupported(expression)
        }
    }

    /// Two values with an operator between them.
    func binary(
        _ left: any PredicateExpression, _ sign: String, _ right: any PredicateExpression
    ) throws -> SQLTerm {
        let (left, right, _) = try operands(left, right)
        return .expression(.format("(@ \(sign) @)", left, right))
    }

    /// Two values that are compared, or take each other's place, and the entity whose models they identify, if they do.
    ///
    /// Rows of different entities have the same numbers. So an identifier of another entity becomes a number that no
    /// row has.
    func operands(
        _ left: any PredicateExpression, _ right: any PredicateExpression
    ) throws -> (SQLText, SQLText, EntityLayout?) {
        let terms = (try term(left), try term(right))
        let entity = terms.0.identified ?? terms.1.identified
        func text(_ term: SQLTerm, _ expression: any PredicateExpression) throws -> SQLText {
            if case .constant(let value) = term { return SQLText("?", [try stored(value, identifying: entity)]) }
            let text = try scalar(term, of: expression)
            guard let entity, let other = term.identified, other.table !== entity.table else { return text }
            return .format("(CASE WHEN @ IS NOT NULL THEN @ END)", text, SQLText("?", [Self.noRow]))
        }
        return (try text(terms.0, left), try text(terms.1, right), entity)
    }

    /// Two values of a type with `=`, `<>`, `IS` or `IS NOT` between them.
    func equality(
        _ left: any PredicateExpression, _ sign: String, _ right: any PredicateExpression, of type: Any.Type
    ) throws -> SQLTerm {
        guard StoredList.isUnordered(type) else { return try binary(left, sign, right) }
        // Equal sets may have their elements in different orders, also in JSON.
        let function = TextFunctions.sortedElements
        return .expression(
            .format("(\(function)(@) \(sign) \(function)(@))", try scalar(left), try scalar(right)))
    }

    /// A Bool as SQL: 0, 1 or NULL.
    func condition(_ expression: any PredicateExpression) throws -> SQLText {
        switch try test(expression) {
        case .known(let value): return SQLText(value ? "1" : "0")
        case .text(let text): return text
        }
    }

    enum Test {
        /// The same for every row.
        case known(Bool)
        case text(SQLText)
    }

    /// A Bool, known or as SQL. Translates each part once only, since translating may join tables.
    func test(_ expression: any PredicateExpression) throws -> Test {
        let term = try term(expression)
        if case .constant(let value) = term, let known = value as? Bool { return .known(known) }
        return .text(try scalar(term, of: expression))
    }

    /// The value of an identifier that identifies no row.
    private static let noRow = Value.integer(.min)

    /// - Parameter entity: the entity whose identifiers the value is compared with.
    func stored(_ value: Any, identifying entity: EntityLayout? = nil) throws -> Value {
        if let token = value as? DefaultHistoryToken { return try historyScope.stored(token) }
        if let identifier = value as? PersistentIdentifier {
            if let history { return history.stored(identifier) }
            let own = layout[named: identifier.entityName]
            // Classes of one hierarchy share a table.
            if let entity, entity.table !== own?.table { return Self.noRow }
            return row(identifier, own).map { .integer($0) } ?? Self.noRow
        }
        if let optional = value as? any OptionalType {
            guard let wrapped = optional.anyValue else { return .null }
            return try stored(wrapped, identifying: entity)
        }
        if let attribute = value as? any StorableAttribute { return attribute.storedValue }
        if let raw = value as? any RawRepresentable, let attribute = raw.rawValue as? any StorableAttribute {
            return attribute.storedValue
        }
        if let value = value as? any Encodable {
            do {
                return try JSONValue.encode(value)
            } catch {
                throw SwiftDataError.unencodableValue.because("A value in a predicate: \(type(of: error)).")
            }
        }
        throw SwiftDataError.unsupportedPredicate.because("A \(type(of: value)) can't be expressed in SQL.")
    }

    // MARK: Relationships

    /// Builds `SELECT ... FROM` the elements of a relationship `WHERE` they belong to its owner.
    func select(
        _ what: String, from collection: CollectionTerm, where test: ((ModelTerm) throws -> SQLText)? = nil
    ) throws -> SQLText {
        let scope = QueryScope(counter)
        let alias = counter.next()
        let link = collection.link
        let table = link.destination.table
        let element = ModelTerm(
            row: SQLText("\(alias).\(TableLayout.key)"), layout: link.destination, scope: scope, knownAlias: alias)
        var conditions: [SQLText] = []
        switch link.storage {
        case .inverse:
            guard let inverse = link.inverse, let column = link.destination.column(of: inverse) else {
                throw SwiftDataError.unsupportedPredicate.because("\(link.name) has no column.")
            }
            conditions.append(.format("\(alias).\(column.quotedName) = @", collection.owner.row))
        case .join(let join, let own, let other):
            conditions.append(
                .format(
                    """
                    \(alias).\(TableLayout.key) IN (SELECT \(other.quotedName) FROM \(join.quotedName) WHERE \
                    \(own.quotedName) = @)
                    """,
                    collection.owner.row))
        case .column, .list: throw SwiftDataError.unsupportedPredicate.because("\(link.name) is not a collection.")
        }
        for filter in collection.filters { conditions.append(try filter(self, element)) }
        if let test { conditions.append(try test(element)) }
        let from = "SELECT \(what) FROM \(table.name.quotedName) \(alias)@ WHERE @"
        return .format(from, .joined(scope.joins, ""), .joined(conditions.map { .format("(@)", $0) }, " AND "))
    }

    func related(_ link: Link, of owner: ModelTerm) throws -> SQLTerm {
        if link.isToMany { return .collection(CollectionTerm(link: link, owner: owner)) }
        let row: SQLText
        if case .column = link.storage {
            guard let column = owner.layout.column(of: link) else {
                throw SwiftDataError.unsupportedPredicate.because("\(link.name) has no column.")
            }
            row = SQLText("\(owner.alias).\(column.quotedName)")
        } else {
            let rows = try select(TableLayout.key, from: CollectionTerm(link: link, owner: owner))
            row = .format("(@)", rows)
        }
        return .model(ModelTerm(row: row, layout: link.destination, scope: owner.scope))
    }
}

extension EntityLayout {
    /// The name of the column for a relationship's end that is stored in this table.
    func column(of link: Link) -> String? {
        slots.first { $0.link === link }?.column.map { table.columns[$0].name }
    }
}
