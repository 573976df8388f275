/// A schema's SQL, split into parts that can be left out individually: statements, the definitions in a `CREATE TABLE`,
/// and the clauses of each.
///
/// Parts are numbered in the order of the text, so that a number means the same part whatever else is left out. Works
/// on any script, since it only looks at words, quotes and parentheses; SQLite decides whether the remaining script is
/// valid.
package struct SchemaText {
    /// A part with its nested parts.
    private struct Part {
        var number: Int
        /// The text of a part without nested parts.
        var text = ""
        var parts: [Part] = []
        /// The text between its parts, and around them.
        var separator = ""
        var opening = ""
        var closing = ""

        func text(without left: Set<Int>) -> String? {
            guard !left.contains(number) else { return nil }
            guard !parts.isEmpty else { return text }
            let kept = parts.compactMap { $0.text(without: left) }
            // The first clause of a definition is its name.
            guard !kept.isEmpty, separator != " " || !left.contains(parts[0].number) else { return nil }
            return opening + kept.joined(separator: separator) + closing
        }
    }

    private var statements: [Part] = []
    /// The number of parts.
    package private(set) var count = 0

    package init(_ script: String) {
        for tokens in Self.statements(of: script) { statements.append(statement(tokens)) }
    }

    /// The script without these parts.
    package func text(without left: some Sequence<Int>) -> String {
        let left = Set(left)
        return statements.compactMap { $0.text(without: left).map { $0 + ";\n" } }.joined()
    }

    // MARK: Parsing

    private mutating func next() -> Int {
        count += 1
        return count - 1
    }

    private mutating func statement(_ tokens: [Substring]) -> Part {
        var part = Part(number: next(), text: Self.join(tokens))
        let words = tokens.prefix(6).map { $0.uppercased() }
        guard words.first == "CREATE", let open = tokens.firstIndex(of: "(") else { return part }
        let close = Self.end(tokens, from: open)
        if words.contains("TABLE"), !words.contains("VIRTUAL"), close < tokens.count {
            var body = Part(number: -1, separator: ", ", opening: "(", closing: ")")
            for item in Self.split(Array(tokens[(open + 1)..<close]), at: { $0 == "," }, keeps: false) {
                body.parts.append(definition(item))
            }
            part.parts = [Part(number: -1, text: Self.join(Array(tokens[..<open]))), body]
            let options = Self.split(Array(tokens[(close + 1)...]), at: { $0 == "," }, keeps: false)
                .filter { !$0.isEmpty }
            if !options.isEmpty {
                var tail = Part(number: -1, separator: ", ")
                for option in options { tail.parts.append(Part(number: next(), text: Self.join(option))) }
                part.parts.append(tail)
            }
            part.separator = "  "
        } else if words.contains("INDEX"), close + 1 < tokens.count {
            part.parts = [
                Part(number: -1, text: Self.join(Array(tokens[...close]))),
                Part(number: next(), text: Self.join(Array(tokens[(close + 1)...]))),
            ]
            part.separator = "  "
        }
        return part
    }

    private static let starts: Set<String> = [
        "CONSTRAINT", "PRIMARY", "NOT", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS", "ON",
        "AUTOINCREMENT", "DEFERRABLE", "STORED",
    ]

    private mutating func definition(_ tokens: [Substring]) -> Part {
        var part = Part(number: next(), text: Self.join(tokens))
        var before = ""
        let clauses = Self.split(
            tokens,
            at: { token in
                let word = token.uppercased()
                defer { before = word }
                return Self.starts.contains(word) && !["SET", "ALWAYS", "CONSTRAINT"].contains(before)
            }, keeps: true)
        guard clauses.count > 1 else { return part }
        part.separator = " "
        part.parts = clauses.map { Part(number: next(), text: Self.join($0)) }
        return part
    }

    /// Splits at matching tokens outside of all parentheses. A matching token becomes the first of the next group, or
    /// is dropped.
    private static func split(
        _ tokens: [Substring], at isStart: (Substring) -> Bool, keeps: Bool
    ) -> [[Substring]] {
        var groups: [[Substring]] = [[]]
        var depth = 0
        for (index, token) in tokens.enumerated() {
            if token == "(" { depth += 1 }
            if token == ")" { depth -= 1 }
            if depth == 0, isStart(token), index > 0 || !keeps {
                groups.append(keeps ? [token] : [])
            } else {
                groups[groups.count - 1].append(token)
            }
        }
        return groups
    }

    /// The tokens, with a space wherever there was something between them.
    private static func join(_ tokens: [Substring]) -> String {
        var text = ""
        var end: Substring.Index?
        for token in tokens {
            if let end, end != token.startIndex { text += " " }
            text += token
            end = token.endIndex
        }
        return text
    }

    /// The index at which the parenthesis that opens here is closed.
    private static func end(_ tokens: [Substring], from open: Int) -> Int {
        var depth = 0
        for index in open..<tokens.count {
            if tokens[index] == "(" { depth += 1 }
            if tokens[index] == ")" { depth -= 1 }
            if depth == 0 { return index }
        }
        return tokens.count
    }

    /// The tokens of each statement. A trigger ends with its `END`.
    static func statements(of script: String) -> [[Substring]] {
        var statements: [[Substring]] = []
        var current: [Substring] = []
        var depth = 0
        for token in tokens(of: script) {
            let isTrigger =
                current.first?.uppercased() == "CREATE" && current.prefix(3).contains { $0.uppercased() == "TRIGGER" }
            if isTrigger, ["BEGIN", "CASE"].contains(token.uppercased()) { depth += 1 }
            if isTrigger, token.uppercased() == "END" { depth -= 1 }
            if token == ";", depth <= 0 {
                if !current.isEmpty { statements.append(current) }
                current = []
                depth = 0
            } else {
                current.append(token)
            }
        }
        if !current.isEmpty { statements.append(current) }
        return statements
    }

    /// Splits SQL into words, numbers, quoted literals and names, and single characters of anything else. Drops
    /// comments.
    static func tokens(of sql: String) -> [Substring] {
        let quotes: [Unicode.Scalar: Unicode.Scalar] = ["'": "'", "\"": "\"", "`": "`", "[": "]"]
        let text = sql.unicodeScalars
        var tokens: [Substring] = []
        var index = text.startIndex
        func isWord(_ scalar: Unicode.Scalar) -> Bool {
            scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "_" || scalar == "$"
                || scalar == "." || !scalar.isASCII
        }
        while index < text.endIndex {
            let scalar = text[index]
            let start = index
            if text[index...].starts(with: "--".unicodeScalars) {
                index = text[index...].firstIndex(of: "\n") ?? text.endIndex
                continue
            }
            if text[index...].starts(with: "/*".unicodeScalars) {
                index = text.index(index, offsetBy: 2)
                while index < text.endIndex, !text[index...].starts(with: "*/".unicodeScalars) {
                    index = text.index(after: index)
                }
                index = text.index(index, offsetBy: 2, limitedBy: text.endIndex) ?? text.endIndex
                continue
            }
            if scalar.properties.isWhitespace {
                index = text.index(after: index)
                continue
            }
            if let close = quotes[scalar] {
                index = text.index(after: index)
                while index < text.endIndex {
                    let isClose = text[index] == close
                    index = text.index(after: index)
                    guard isClose else { continue }
                    guard close != "]", index < text.endIndex, text[index] == close else { break }
                    index = text.index(after: index)
                }
            } else if isWord(scalar) {
                index = text[index...].firstIndex { !isWord($0) } ?? text.endIndex
                // x'00' is one literal.
                if index < text.endIndex, text[index] == "'", text[start..<index].count == 1,
                    scalar == "x" || scalar == "X"
                {
                    index = text.index(after: index)
                    index = text[index...].firstIndex(of: "'").map { text.index(after: $0) } ?? text.endIndex
                }
            } else {
                index = text.index(after: index)
                // Two-character operators.
                if index < text.endIndex, "<>=!|".unicodeScalars.contains(scalar),
                    "<>=|".unicodeScalars.contains(text[index])
                {
                    index = text.index(after: index)
                }
            }
            tokens.append(Substring(text[start..<index]))
        }
        return tokens
    }
}
