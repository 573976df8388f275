/// Expressions that `#Predicate` generates where Foundation has none on Linux.
public enum ModelExpressions {
    public static func equal<L: PredicateExpression>(_ left: L, _ right: L.Output)
        -> PredicateExpressions.Equal<L, PredicateExpressions.Value<L.Output>> where L.Output: Equatable
    {
        PredicateExpressions.build_Equal(lhs: left, rhs: PredicateExpressions.build_Arg(right))
    }

    public static func notEqual<L: PredicateExpression>(_ left: L, _ right: L.Output)
        -> PredicateExpressions.NotEqual<L, PredicateExpressions.Value<L.Output>> where L.Output: Equatable
    {
        PredicateExpressions.build_NotEqual(lhs: left, rhs: PredicateExpressions.build_Arg(right))
    }

    public static func evaluate<T, I: PredicateExpression>(_ predicate: Predicate<T>, _ input: I)
        -> NestedPredicate<T, I> where I.Output == T
    {
        NestedPredicate(predicate: predicate, input: input)
    }

    public static func evaluate<T, O, I: PredicateExpression>(_ expression: Expression<T, O>, _ input: I)
        -> NestedExpression<T, O, I> where I.Output == T
    {
        NestedExpression(expression: expression, input: input)
    }
}

// Builders that Foundation lacks on Linux, under the names that its own macro generates too.
extension PredicateExpressions {
    public static func build_localizedStandardContains<B: PredicateExpression, O: PredicateExpression>(
        _ base: B, _ other: O
    ) -> LocalizedStandardContains<B, O> where B.Output == String, O.Output == String {
        LocalizedStandardContains(base: base, other: other)
    }

    public static func build_caseInsensitiveCompare<B: PredicateExpression, O: PredicateExpression>(
        _ base: B, _ other: O
    ) -> CaseInsensitiveCompare<B, O> where B.Output == String, O.Output == String {
        CaseInsensitiveCompare(base: base, other: other)
    }
}

/// Another predicate, applied to a part of this one.
public struct NestedPredicate<T, Input: PredicateExpression>: PredicateExpression where Input.Output == T {
    let predicate: Predicate<T>
    let input: Input

    public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
        try predicate.evaluate(try input.evaluate(bindings))
    }
}

/// An expression, applied to a part of a predicate.
public struct NestedExpression<T, Output, Input: PredicateExpression>: PredicateExpression where Input.Output == T {
    let expression: Expression<T, Output>
    let input: Input

    public func evaluate(_ bindings: PredicateBindings) throws -> Output {
        try expression.evaluate(try input.evaluate(bindings))
    }
}

/// `localizedStandardContains`: ignores case and diacritics.
public struct LocalizedStandardContains<Base: PredicateExpression, Other: PredicateExpression>: PredicateExpression
where Base.Output == String, Other.Output == String {
    let base: Base
    let other: Other

    public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
        try base.evaluate(bindings).localizedStandardContains(try other.evaluate(bindings))
    }
}

// Foundation requires the parts of a predicate to be Codable. These expressions never leave their process.

extension NestedPredicate: StandardPredicateExpression, Codable, Sendable where Input: StandardPredicateExpression {
    public init(from decoder: any Decoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be decoded.")
    }
    public func encode(to encoder: any Encoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be encoded.")
    }
}

extension NestedExpression: StandardPredicateExpression, Codable, Sendable where Input: StandardPredicateExpression {
    public init(from decoder: any Decoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be decoded.")
    }
    public func encode(to encoder: any Encoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be encoded.")
    }
}

extension LocalizedStandardContains: StandardPredicateExpression, Codable, Sendable
where Base: StandardPredicateExpression, Other: StandardPredicateExpression {
    public init(from decoder: any Decoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be decoded.")
    }
    public func encode(to encoder: any Encoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be encoded.")
    }
}

extension NestedPredicate: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let term = try translator.term(input)
        return try translator.with(predicate.variable.key, term) { try translator.term(predicate.expression) }
    }
}

extension NestedExpression: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        let term = try translator.term(input)
        return try translator.with(expression.variable.key, term) { try translator.term(expression.expression) }
    }
}

extension LocalizedStandardContains: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        .expression(
            .format(
                "\(TextFunctions.contains)(@, @)", TextFunctions.argument(try translator.scalar(base)),
                TextFunctions.argument(try translator.scalar(other))))
    }
}
