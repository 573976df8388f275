/// How SQL compares values of a type, where it isn't as their columns are compared.
enum Ordering<T> {
    /// Decimals are texts.
    static var collation: String { T.self == Decimal.self ? TextFunctions.decimalOrder : "" }

    /// Unsigned numbers beyond the largest signed one are negative in their columns, and come after the others.
    static func operand(_ text: SQLText) -> SQLText {
        guard T.self == UInt64.self || T.self == UInt.self else { return text }
        return .format("(@ < 0, @)", text, text)
    }
}
