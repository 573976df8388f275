/// How SQL must compare values of a type whose column order differs from the value order.
enum Ordering<T> {
    /// Decimals are stored as text.
    static var collation: String { T.self == Decimal.self ? TextFunctions.decimalOrder : "" }

    /// Unsigned numbers beyond the largest signed one are stored as negative numbers, and sort after the others.
    static func operand(_ text: SQLText) -> SQLText {
        guard T.self == UInt64.self || T.self == UInt.self else { return text }
        return .format("(@ < 0, @)", text, text)
    }
}
