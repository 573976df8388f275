import MartletStore

/// Queries for an attribute that is a list of values, stored as JSON.
struct StoredList {
    private let form: NumberForm

    /// Nil if the type isn't a list, or if its elements are represented differently in JSON than in a column.
    init?(_ type: Any.Type) {
        guard type != String.self, let list = type as? any ListOfValues.Type, StoredPart.isPlain(list.elementType)
        else { return nil }
        form = NumberForm(list.elementType)
    }

    /// Returns true for sets, also optional ones.
    static func isUnordered(_ type: Any.Type) -> Bool {
        (unwrapped(type) as? any ListOfValues.Type)?.isOrdered == false
    }

    /// An element, as `json_each` returns it in this column, in the form that a column has.
    private func element(_ column: String) -> String { form.column(SQLText(column)).sql }

    func contains(_ value: SQLText, in list: SQLText) -> SQLText {
        .format("EXISTS (SELECT 1 FROM json_each(@) WHERE \(element("value")) IS @)", list, value)
    }

    /// The SQL condition that some element passes a test.
    func hasElement(
        of list: SQLText, _ translator: PredicateTranslator, _ test: (SQLTerm) throws -> SQLText
    ) rethrows -> SQLText {
        let alias = translator.counter.next()
        return .format(
            "EXISTS (SELECT 1 FROM json_each(@) \(alias) WHERE @)", list,
            try test(.scalar(SQLText(element("\(alias).value")), isColumn: true)))
    }

    /// The smallest or the largest element. NULL if the list is empty.
    func extreme(_ function: String, of list: SQLText) -> SQLText {
        .format("(SELECT \(function)(\(element("value"))) FROM json_each(@))", list)
    }
}

private protocol ListOfValues {
    static var elementType: Any.Type { get }
    static var isOrdered: Bool { get }
}

extension Array: ListOfValues {
    static var elementType: Any.Type { Element.self }
    static var isOrdered: Bool { true }
}

extension Set: ListOfValues {
    static var elementType: Any.Type { Element.self }
    static var isOrdered: Bool { false }
}

extension PredicateExpressions.SequenceMaximum: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        try translator.extreme("max", elements, of: self) { (elements: Elements.Output) in elements.max() }
    }
}

extension PredicateExpressions.SequenceMinimum: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        try translator.extreme("min", elements, of: self) { (elements: Elements.Output) in elements.min() }
    }
}

extension PredicateTranslator {
    fileprivate func extreme<E: PredicateExpression, R>(
        _ function: String, _ elements: E, of expression: any PredicateExpression, _ known: (E.Output) -> R?
    ) throws -> SQLTerm {
        switch try term(elements) {
        case .constant(let value as E.Output): return .constant(known(value) as Any)
        case .scalar(let text, _):
            guard let list = StoredList(E.Output.self) else { throw Self.unsupported(expression) }
            return .expression(list.extreme(function, of: text))
        default: throw Self.unsupported(expression)
        }
    }
}
