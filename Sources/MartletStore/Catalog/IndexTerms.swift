/// The terms of a `CREATE INDEX`, as SQL.
///
/// An expression is kept verbatim, but without comments and sort order, so that it can stand in parentheses in a query.
struct IndexTerms {
    private(set) var terms: [String] = []

    init(_ sql: String) {
        var term = ""
        var depth = 0
        var quote: Character?
        var index = sql.startIndex
        while index < sql.endIndex {
            let character = sql[index]
            let next = sql.index(after: index)
            if let open = quote {
                if depth > 0 { term.append(character) }
                if character == open { quote = nil }
                index = next
                continue
            }
            if let end = TableInspector.comment(sql[index...]) {
                term.append(" ")
                index = end
                continue
            }
            index = next
            switch character {
            case "'", "\"", "`": quote = character
            case "[": quote = "]"
            case "(":
                depth += 1
                if depth == 1 { continue }
            case ")":
                depth -= 1
                if depth == 0 {
                    terms.append(Self.withoutOrder(term))
                    return
                }
            case "," where depth == 1:
                terms.append(Self.withoutOrder(term))
                term = ""
                continue
            default: break
            }
            if depth > 0 { term.append(character) }
        }
    }

    private static func withoutOrder(_ term: String) -> String {
        let trimmed = term.trimmed
        for order in ["ASC", "DESC"] where trimmed.uppercased().hasSuffix(order) {
            let rest = trimmed.dropLast(order.count)
            // Must be a separate word, not the end of a column's name.
            if let last = rest.last, last.isWhitespace || ")\"'`]".contains(last) { return String(rest).trimmed }
        }
        return trimmed
    }
}

extension String {
    /// The string without white space at its ends.
    fileprivate var trimmed: String {
        String(trimmingPrefix(while: \.isWhitespace).reversed().trimmingPrefix(while: \.isWhitespace).reversed())
    }
}
