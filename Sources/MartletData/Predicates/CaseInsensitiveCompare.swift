/// `caseInsensitiveCompare`, for which Foundation has no predicate expression on Linux.
public struct CaseInsensitiveCompare<Base: PredicateExpression, Other: PredicateExpression>: PredicateExpression
where Base.Output == String, Other.Output == String {
    let base: Base
    let other: Other

    public func evaluate(_ bindings: PredicateBindings) throws -> ComparisonResult {
        try base.evaluate(bindings).caseInsensitiveCompare(try other.evaluate(bindings))
    }
}

extension CaseInsensitiveCompare: StandardPredicateExpression, Codable, Sendable
where Base: StandardPredicateExpression, Other: StandardPredicateExpression {
    public init(from decoder: any Decoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be decoded.")
    }
    public func encode(to encoder: any Encoder) throws {
        throw SwiftDataError.unsupportedPredicate.because("It can't be encoded.")
    }
}

extension CaseInsensitiveCompare: SQLTranslatable {
    func translate(_ translator: PredicateTranslator) throws -> SQLTerm {
        .expression(
            .format(
                "\(TextFunctions.caseInsensitiveCompare)(@, @)", TextFunctions.argument(try translator.scalar(base)),
                TextFunctions.argument(try translator.scalar(other))))
    }
}
