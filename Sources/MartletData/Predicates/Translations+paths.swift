import MartletStore

// SQL for key paths, collections, strings and ranges.

extension PredicateExpressions.KeyPath: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        switch try translator.term(root) {
        case .model(let model): return try attribute(of: model, translator)
        case .constant(let value):
            guard let value = value as? Root.Output else { throw PredicateTranslator.unsupported(self) }
            return .constant(value[keyPath: keyPath])
        case .collection(let collection):
            switch kind {
            case .collectionCount:
                return .expression(.format("(@)", try translator.select("count(*)", from: collection)))
            case .collectionIsEmpty:
                return .expression(.format("(NOT EXISTS (@))", try translator.select("1", from: collection)))
            default: throw unknown
            }
        case .scalar(let text, _):
            let isText = Root.Output.self == String.self
            switch kind {
            case .collectionCount where isText:
                return .expression(.format("\(TextFunctions.count)(@)", TextFunctions.argument(text)))
            case .collectionIsEmpty where isText: return .expression(.format("(@ = '')", text))
            case .collectionCount where StoredList(Root.Output.self) != nil:
                return .expression(.format("json_array_length(@)", text))
            case .collectionIsEmpty where StoredList(Root.Output.self) != nil:
                return .expression(.format("(json_array_length(@) = 0)", text))
            default: return .expression(try StoredPart(keyPath).sql(of: text))
            }
        case .history(.changes(let filters)):
            switch kind {
            case .collectionCount:
                return .expression(.format("(@)", try translator.select("count(*)", changes: filters)))
            case .collectionIsEmpty:
                return .expression(.format("(NOT EXISTS (@))", try translator.select("1", changes: filters)))
            default: throw unknown
            }
        case .history(let term):
            guard let property = try translator.property(keyPath, of: term) else {
                throw SwiftDataError.unsupportedPredicate.because("The history can't be queried for \(keyPath).")
            }
            return property
        case .range, .identifier: throw unknown
        }
    }

    private var unknown: SwiftDataError {
        .unsupportedPredicate.because("There is no SQL for this property of a \(Root.Output.self).")
    }

    private func attribute(of model: ModelTerm, _ translator: PredicateTranslator) throws -> SQLTerm {
        if let slot = model.layout.slot(keyPath) {
            if let link = model.layout.slots[slot].link { return try translator.related(link, of: model) }
            guard let column = model.layout.slots[slot].column else { throw unknown }
            return .scalar(model.column(column), isColumn: true)
        }
        if model.layout.isIdentifier(keyPath) { return .identifier(model.row, of: model.layout) }
        throw SwiftDataError.unsupportedPredicate.because("This property of \(model.layout.name) isn't stored.")
    }
}

extension EntityLayout {
    /// Returns true for `\.persistentModelID`, and for `\.id` if the model has no attribute of that name.
    func isIdentifier(_ keyPath: AnyKeyPath) -> Bool { type.isIdentifier(keyPath) }
}

extension PersistentModel {
    fileprivate static func isIdentifier(_ keyPath: AnyKeyPath) -> Bool {
        let identifier: AnyKeyPath = \Self.persistentModelID
        if keyPath == identifier { return true }
        let id: AnyKeyPath = \Self.id
        return keyPath == id && Self.ID.self == PersistentIdentifier.self
    }
}

extension PredicateExpressions.SequenceContains: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        switch try translator.term(sequence) {
        case .constant(let value):
            guard let values = elements(of: value) else { throw PredicateTranslator.unsupported(self) }
            let term = try translator.term(element)
            let stored = try values.map { try translator.stored($0, identifying: term.identified) }
            let element = try translator.scalar(term, of: element)
            let marks = stored.filter { !$0.isNull }
            let isIn = try ValueList(marks).contains(element)
            // Avoids NULL, which would be neither true nor false.
            if stored.count > marks.count { return .expression(.format("(@ OR @ IS NULL)", isIn, element)) }
            guard RHS.Output.self is any OptionalType.Type else { return .expression(isIn) }
            return .expression(.format("(@ AND @ IS NOT NULL)", isIn, element))
        case .collection(let collection):
            guard case .model(let model) = try translator.term(element) else {
                throw PredicateTranslator.unsupported(self)
            }
            let rows = try translator.select("1", from: collection) { element in
                SQLText.format("@ = @", element.row, model.row)
            }
            return .expression(.format("EXISTS (@)", rows))
        case .scalar(let text, _):
            guard let list = StoredList(LHS.Output.self) else { throw PredicateTranslator.unsupported(self) }
            return .expression(list.contains(try translator.scalar(element), in: text))
        default: throw PredicateTranslator.unsupported(self)
        }
    }
}

extension PredicateExpressions.SequenceContainsWhere: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let term = try translator.term(sequence)
        if case .constant(let value) = term, let values = elements(of: value) {
            let tests = try translator.tests(values) { element in
                try translator.with(variable.key, .constant(element)) { try translator.condition(test) }
            }
            return tests.isEmpty ? .constant(false) : .expression(.format("(@)", .balanced(tests, " OR ")))
        }
        let isThere = try translator.hasElement(term, LHS.Output.self) { element in
            try translator.with(variable.key, element) { try translator.condition(test) }
        }
        guard let isThere else { throw PredicateTranslator.unsupported(self) }
        return .expression(isThere)
    }
}

extension PredicateExpressions.SequenceAllSatisfy: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let term = try translator.term(sequence)
        if case .constant(let value) = term, let values = elements(of: value) {
            let tests = try translator.tests(values) { element in
                try translator.with(variable.key, .constant(element)) {
                    SQLText.format("(@ IS TRUE)", try translator.condition(test))
                }
            }
            return tests.isEmpty ? .constant(true) : .expression(.format("(@)", .balanced(tests, " AND ")))
        }
        let exception = try translator.hasElement(term, LHS.Output.self) { element in
            try translator.with(variable.key, element) { .format("@ IS NOT TRUE", try translator.condition(test)) }
        }
        guard let exception else { throw PredicateTranslator.unsupported(self) }
        return .expression(.format("(NOT @)", exception))
    }
}

extension PredicateTranslator {
    /// The tests of known values.
    ///
    /// - Throws: ``SwiftDataError/unsupportedPredicate`` if they need more parameters than a statement may have.
    fileprivate func tests(_ values: [Any], _ test: (Any) throws -> SQLText) throws -> [SQLText] {
        var tests: [SQLText] = []
        var parameterCount = 0
        for value in values {
            let text = try test(value)
            parameterCount += text.arguments.count
            guard parameterCount <= ValueList.limit else {
                throw SwiftDataError.unsupportedPredicate.because(
                    """
                    Testing each of \(values.count) values takes more than 30,000 parameters. Use contains(_:) if that \
                    is enough, or fetch in several parts.
                    """
                )
            }
            tests.append(text)
        }
        return tests
    }

    /// The SQL condition that a relationship, a transaction's changes or a list of values has an element that passes a
    /// test. Nil for any other term.
    fileprivate func hasElement(
        _ term: SQLTerm, _ type: Any.Type, _ test: @escaping (SQLTerm) throws -> SQLText
    ) throws -> SQLText? {
        switch term {
        case .collection(let collection):
            .format("EXISTS (@)", try select("1", from: collection) { try test(.model($0)) })
        case .history(.changes(let filters)):
            .format("EXISTS (@)", try select("1", changes: filters) { try test(.history($0)) })
        case .scalar(let text, _): try StoredList(type)?.hasElement(of: text, self, test)
        default: nil
        }
    }
}

extension PredicateExpressions.Filter: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let term = try translator.term(sequence)
        if case .history(.changes(var filters)) = term {
            filters.append { translator, change in
                try translator.with(variable.key, .history(change)) { try translator.condition(filter) }
            }
            return .history(.changes(filters))
        }
        guard case .collection(var collection) = term else { throw PredicateTranslator.unsupported(self) }
        collection.filters.append { translator, element in
            try translator.with(variable.key, .model(element)) { try translator.condition(filter) }
        }
        return .collection(collection)
    }
}

extension PredicateExpressions.CollectionContainsCollection: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        guard Base.Output.self == String.self else { throw PredicateTranslator.unsupported(self) }
        return .expression(.format("(instr(@, @) > 0)", try translator.scalar(base), try translator.scalar(other)))
    }
}

extension PredicateExpressions.SequenceStartsWith: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        guard Base.Output.self == String.self else { throw PredicateTranslator.unsupported(self) }
        let (base, prefix) = (try translator.scalar(base), try translator.scalar(prefix))
        let (bytes, first) = (TextFunctions.argument(base), TextFunctions.argument(prefix))
        // The first comparison allows the use of an index. SQLite's substr returns NULL for an empty blob.
        return .expression(
            .format(
                "(@ >= @ AND coalesce(substr(@, 1, length(@)), x'') = @)", base, prefix, bytes, first, first))
    }
}

extension PredicateExpressions.Range: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        .range(lower: try translator.scalar(lower), upper: try translator.scalar(upper), isClosed: false)
    }
}

extension PredicateExpressions.ClosedRange: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        .range(lower: try translator.scalar(lower), upper: try translator.scalar(upper), isClosed: true)
    }
}

extension PredicateExpressions.RangeExpressionContains: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let element = Ordering<Element.Output>.operand(try translator.scalar(element))
        let bounds: (SQLText, SQLText, Bool)
        switch try translator.term(range) {
        case .range(let lower, let upper, let isClosed): bounds = (lower, upper, isClosed)
        case .constant(let value):
            guard let range = value as? any BoundedRange else { throw PredicateTranslator.unsupported(self) }
            let (lower, upper, isClosed) = range.bounds
            bounds = (
                SQLText("?", [try translator.stored(lower)]), SQLText("?", [try translator.stored(upper)]), isClosed
            )
        default: throw PredicateTranslator.unsupported(self)
        }
        let collation = Ordering<Element.Output>.collation
        let (lower, upper) = ("@ >= @\(collation)", "@ \(bounds.2 ? "<=" : "<") @\(collation)")
        let (first, last) = (Ordering<Element.Output>.operand(bounds.0), Ordering<Element.Output>.operand(bounds.1))
        return .expression(.format("(\(lower) AND \(upper))", element, first, element, last))
    }
}

private func elements(of value: Any) -> [Any]? {
    func open<S: Sequence>(_ values: S) -> [Any] { values.map { $0 as Any } }
    guard let values = value as? any Sequence else { return nil }
    return open(values)
}

private protocol BoundedRange {
    var bounds: (lower: Any, upper: Any, isClosed: Bool) { get }
}

extension Range: BoundedRange {
    fileprivate var bounds: (lower: Any, upper: Any, isClosed: Bool) { (lowerBound, upperBound, false) }
}

extension ClosedRange: BoundedRange {
    fileprivate var bounds: (lower: Any, upper: Any, isClosed: Bool) { (lowerBound, upperBound, true) }
}
