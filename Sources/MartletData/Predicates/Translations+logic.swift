import MartletStore

// SQL for Foundation's expressions: values, logic, comparisons, arithmetic, optionals.

extension PredicateExpressions.Variable: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm { try translator.variable(key) }
}

extension PredicateExpressions.Value: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm { .constant(value) }
}

extension PredicateExpressions.NilLiteral: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm { .constant(String?.none as Any) }
}

extension PredicateExpressions.Conjunction: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        switch try translator.test(lhs) {
        case .known(let value): return value ? try translator.term(rhs) : .constant(false)
        case .text(let text): return .expression(.format("(@ AND @)", text, try translator.condition(rhs)))
        }
    }
}

extension PredicateExpressions.Disjunction: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        switch try translator.test(lhs) {
        case .known(let value): return value ? .constant(true) : try translator.term(rhs)
        case .text(let text): return .expression(.format("(@ OR @)", text, try translator.condition(rhs)))
        }
    }
}

extension PredicateExpressions.Negation: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        switch try translator.test(wrapped) {
        case .known(let value): return .constant(!value)
        case .text(let text): return .expression(.format("(@ IS NOT TRUE)", text))
        }
    }
}

extension PredicateExpressions.Conditional: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        switch try translator.test(test) {
        case .known(let value): return try translator.term(value ? trueBranch : falseBranch)
        case .text(let text):
            let (left, right, entity) = try translator.operands(trueBranch, falseBranch)
            return .expression(.format("(CASE WHEN @ THEN @ ELSE @ END)", text, left, right), identifying: entity)
        }
    }
}

extension PredicateExpressions.Equal: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        // IS, since nil equals nil in Swift.
        let sign = LHS.Output.self is any OptionalType.Type ? "IS" : "="
        return try translator.equality(lhs, sign, rhs, of: LHS.Output.self)
    }
}

extension PredicateExpressions.NotEqual: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let sign = LHS.Output.self is any OptionalType.Type ? "IS NOT" : "<>"
        return try translator.equality(lhs, sign, rhs, of: LHS.Output.self)
    }
}

extension PredicateExpressions.Comparison: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        guard LHS.Output.self is any StorableAttribute.Type || LHS.Output.self == DefaultHistoryToken.self else {
            throw SwiftDataError.unsupportedPredicate.because("SQL can't order values of \(LHS.Output.self).")
        }
        let sign =
            switch op {
            case .lessThan: "<"
            case .lessThanOrEqual: "<="
            case .greaterThan: ">"
            case .greaterThanOrEqual: ">="
            @unknown default: throw PredicateTranslator.unsupported(self)
            }
        let (left, right) = (try translator.scalar(lhs), try translator.scalar(rhs))
        return .expression(
            .format(
                "(@ \(sign) @\(Ordering<LHS.Output>.collation))", Ordering<LHS.Output>.operand(left),
                Ordering<LHS.Output>.operand(right)))
    }
}

extension PredicateExpressions.Arithmetic: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        guard LHS.Output.self != Decimal.self else {
            throw SwiftDataError.unsupportedPredicate.because("SQL can't calculate with values of Decimal.")
        }
        let sign =
            switch op {
            case .add: "+"
            case .subtract: "-"
            case .multiply: "*"
            @unknown default: throw PredicateTranslator.unsupported(self)
            }
        return try translator.binary(lhs, sign, rhs)
    }
}

extension PredicateExpressions.IntDivision: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        try translator.binary(lhs, "/", rhs)
    }
}

extension PredicateExpressions.FloatDivision: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        // JSON holds 3.0 as 3, and SQLite divides integers without a remainder.
        .expression(.format("(CAST(@ AS REAL) / @)", try translator.scalar(lhs), try translator.scalar(rhs)))
    }
}

extension PredicateExpressions.IntRemainder: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        try translator.binary(lhs, "%", rhs)
    }
}

extension PredicateExpressions.UnaryMinus: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        .expression(.format("(-@)", try translator.scalar(wrapped)))
    }
}

extension PredicateExpressions.NilCoalesce: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let (left, right, entity) = try translator.operands(lhs, rhs)
        return .expression(.format("coalesce(@, @)", left, right), identifying: entity)
    }
}

extension PredicateExpressions.ForcedUnwrap: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm { try translator.term(inner) }
}

extension PredicateExpressions.OptionalFlatMap: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let wrapped = try translator.term(wrapped)
        if case .constant(let value) = wrapped, let optional = value as? any OptionalType, optional.anyValue == nil {
            return .constant(String?.none as Any)
        }
        let result = try translator.with(variable.key, wrapped) { try translator.term(transform) }
        // For a missing model, each of its attributes is NULL; other expressions need a test.
        let text: SQLText
        switch result {
        case .scalar(let column, isColumn: true) where wrapped.decides(column): return result
        case .identifier(let row, _) where wrapped.decides(row): return result
        case .scalar(let expression, _), .identifier(let expression, _): text = expression
        case .constant: text = try translator.scalar(result, of: self)
        default: return result
        }
        let isThere: SQLText
        switch wrapped {
        case .scalar(let text, _), .identifier(let text, _): isThere = text
        case .model(let model): isThere = model.row
        default: return result
        }
        return .expression(
            .format("(CASE WHEN @ IS NOT NULL THEN @ END)", isThere, text), identifying: result.identified)
    }
}

extension PredicateExpressions.TypeCheck: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        guard case .model(let model) = try translator.term(input), let type = Desired.self as? any PersistentModel.Type
        else { throw PredicateTranslator.unsupported(self) }
        // The type of nil is neither known nor unknown.
        return .expression(.format("(@ IS TRUE)", model.isKind(of: try translator.layout.entity(type))))
    }
}

extension PredicateExpressions.ConditionalCast: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        guard case .model(let model) = try translator.term(input), let type = Desired.self as? any PersistentModel.Type
        else { throw PredicateTranslator.unsupported(self) }
        let entity = try translator.layout.entity(type)
        let row = SQLText.format("(CASE WHEN @ THEN @ END)", model.isKind(of: entity), model.row)
        return .model(ModelTerm(row: row, layout: entity, scope: model.scope))
    }
}
