/// The SQL of a trigger as SQLite stores it, split where a copy of it differs.
struct TriggerText {
    /// `INSERT`, `UPDATE` or `DELETE`.
    let event: String
    /// The SQL from after the name to the condition or the body: when the trigger runs, and on which table.
    let header: Substring
    /// The condition after `WHEN`.
    let condition: Substring?
    /// The SQL from `BEGIN` to `END`.
    let body: Substring
    private let words: [SQLReader.Token]

    /// Nil if the SQL is not that of a trigger.
    init?(_ sql: String) {
        let tokens = SQLReader.placed(sql)
        guard tokens.count > 5, tokens[0].token?.isWord("CREATE") ?? false, tokens[1].token?.isWord("TRIGGER") ?? false
        else { return nil }
        // The name may have any quotes. SQLite has dropped what stood before it.
        let rest = tokens[3...]
        func isWord(_ index: Int, _ word: String) -> Bool { tokens[index].token?.isWord(word) ?? false }
        guard let kind = rest.indices.first(where: { index in Self.events.contains { isWord(index, $0) } }),
            let event = tokens[kind].token?.name?.uppercased(),
            let on = rest.indices.first(where: { $0 > kind && isWord($0, "ON") }), on + 2 < tokens.count
        else { return nil }
        // A table or a column may be named `begin`, without quotes.
        let table = tokens[on + 2].token == .symbol(".") ? on + 3 : on + 1
        var depth = 0
        var when: Int?
        var begin: Int?
        for index in rest.indices where index > table {
            switch tokens[index].token {
            case .symbol("("): depth += 1
            case .symbol(")"): depth -= 1
            default:
                guard depth == 0, tokens[index - 1].token != .symbol(".") else { continue }
                if when == nil, isWord(index, "WHEN") { when = index }
                if isWord(index, "BEGIN") { begin = index }
            }
            if begin != nil { break }
        }
        guard let begin else { return nil }
        let start = tokens[begin].range.lowerBound
        self.event = event
        header = sql[tokens[2].range.upperBound..<(when.map { tokens[$0].range.lowerBound } ?? start)]
        condition = when.map { sql[tokens[$0].range.upperBound..<start] }
        body = sql[start...]
        words = tokens.compactMap(\.token)
    }

    private static let events = ["INSERT", "UPDATE", "DELETE"]

    /// Whether the trigger may refuse the row.
    var mayRefuse: Bool {
        zip(words, words.dropFirst()).contains { $0.isWord("RAISE") && $1 == .symbol("(") }
    }

    /// The conflict policies of its statements: `INSERT OR IGNORE`, `REPLACE INTO`.
    var conflictPolicies: Set<String> {
        var policies: Set<String> = []
        for index in words.indices.dropFirst(2) {
            if words[index - 1].isWord("OR"), ["INSERT", "UPDATE"].contains(where: words[index - 2].isWord) {
                words[index].name.map { _ = policies.insert($0.uppercased()) }
            } else if words[index].isWord("INTO"), words[index - 1].isWord("REPLACE") {
                policies.insert("REPLACE")
            }
        }
        return policies
    }

    /// Returns a copy that exists on one connection only, and that runs only if this condition is true as well.
    func copy(named name: String, when condition: String) -> String {
        let own = self.condition.map { " AND (\($0)\n)" } ?? ""
        return "CREATE TEMP TRIGGER \(name.quotedName)\(header)\nWHEN \(condition)\(own)\n\(body)"
    }
}
