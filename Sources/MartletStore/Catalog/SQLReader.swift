/// Finds the columns that parts of a table's SQL name, as far as words, quotes and parentheses tell.
///
/// It treats a name as a column wherever it is or might be one. So it never finds too few, and its callers must cope
/// with too many.
struct SQLReader {
    enum Token: Equatable {
        /// A word that is not in quotes.
        case word(String)
        /// A quoted name, without its quotes.
        case quoted(String)
        /// Any other single character. Literals are left out.
        case symbol(Character)

        func isWord(_ word: String) -> Bool {
            if case .word(let own) = self { own.uppercased() == word } else { false }
        }

        var name: String? {
            switch self {
            case .word(let name), .quoted(let name): name
            case .symbol: nil
            }
        }
    }

    let tokens: [Token]

    init(_ sql: String) { tokens = Self.tokens(of: sql) }

    private init(tokens: [Token]) { self.tokens = tokens }

    private static let quotes: [Character: Character] = ["'": "'", "\"": "\"", "`": "`", "[": "]"]

    private static func tokens(of sql: String) -> [Token] { placed(sql).compactMap(\.token) }

    /// Returns the tokens with their ranges. The token of a text literal is nil.
    static func placed(_ sql: String) -> [(token: Token?, range: Range<String.Index>)] {
        var tokens: [(token: Token?, range: Range<String.Index>)] = []
        var index = sql.startIndex
        while index < sql.endIndex {
            let start = index
            let character = sql[index]
            if let end = TableInspector.comment(sql[index...]) {
                index = end
            } else if let close = quotes[character] {
                let (text, end) = quoted(sql, from: sql.index(after: index), until: close)
                index = end
                tokens.append((character == "'" ? nil : .quoted(text), start..<index))
            } else if character.isLetter || character == "_" || !character.isASCII {
                index = sql[index...].firstIndex { !isWordPart($0) } ?? sql.endIndex
                tokens.append((.word(String(sql[start..<index])), start..<index))
            } else if character.isNumber {
                // Letters that follow belong to the number: 0x1F, 1e9.
                index = sql[index...].firstIndex { !isWordPart($0) } ?? sql.endIndex
            } else {
                index = sql.index(after: index)
                if !character.isWhitespace { tokens.append((.symbol(character), start..<index)) }
            }
        }
        return tokens
    }

    private static func isWordPart(_ character: Character) -> Bool {
        character.isLetter || character.isNumber || character == "_" || character == "$" || !character.isASCII
    }

    /// Returns the text in quotes, with doubled quotes as one, and the index after it.
    private static func quoted(
        _ sql: String, from start: String.Index, until close: Character
    ) -> (String, end: String.Index) {
        var text = ""
        var index = start
        while index < sql.endIndex {
            let next = sql.index(after: index)
            if sql[index] == close {
                guard close != "]", next < sql.endIndex, sql[next] == close else { return (text, next) }
                text.append(close)
                index = sql.index(after: next)
            } else {
                text.append(sql[index])
                index = next
            }
        }
        return (text, sql.endIndex)
    }

    // MARK: What a table's SQL says

    /// The definitions of columns and constraints between the outer parentheses.
    private var definitions: [SQLReader] {
        guard let open = tokens.firstIndex(of: .symbol("(")) else { return [] }
        var parts: [[Token]] = [[]]
        var depth = 0
        for token in tokens[open...] {
            switch token {
            case .symbol("("):
                depth += 1
                if depth == 1 { continue }
            case .symbol(")"):
                depth -= 1
                if depth == 0 { return parts.map(SQLReader.init(tokens:)) }
            case .symbol(",") where depth == 1:
                parts.append([])
                continue
            default: break
            }
            parts[parts.count - 1].append(token)
        }
        return parts.map(SQLReader.init(tokens:))
    }

    /// Returns the contents of the parentheses after each occurrence of the keyword.
    private func arguments(of keyword: String) -> [SQLReader] {
        var found: [SQLReader] = []
        for (index, token) in tokens.enumerated()
        where token.isWord(keyword) && index + 1 < tokens.count && tokens[index + 1] == .symbol("(") {
            var depth = 0
            let rest = tokens[(index + 1)...]
            let end = rest.firstIndex { token in
                if token == .symbol("(") { depth += 1 }
                if token == .symbol(")") { depth -= 1 }
                return depth == 0
            }
            found.append(SQLReader(tokens: Array(tokens[(index + 2)..<(end ?? tokens.count)])))
        }
        return found
    }

    /// The names in the SQL, in lower case.
    var names: Set<String> { Set(tokens.compactMap { $0.name?.lowercased() }) }

    /// True for a `CREATE TABLE` with that keyword. It can't be a name without quotes.
    var isAutoincrement: Bool { tokens.contains { $0.isWord("AUTOINCREMENT") } }

    /// The names in each CHECK of a `CREATE TABLE`.
    var checks: [Set<String>] { definitions.flatMap { $0.arguments(of: "CHECK") }.map(\.names) }

    /// The names in the expression of each generated column of a `CREATE TABLE`, by the column, all in lower case.
    var generated: [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        for definition in definitions {
            guard let name = definition.tokens.first?.name, let expression = definition.arguments(of: "AS").first else {
                continue
            }
            found[name.lowercased()] = expression.names
        }
        return found
    }

    /// The names in the list of terms of a `CREATE INDEX`.
    var indexed: Set<String> {
        definitions.reduce(into: []) { $0.formUnion($1.names) }
    }
}
