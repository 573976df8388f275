import MartletStore

/// The text of a `CREATE TABLE` statement, split into parts, so that a rebuilt table keeps what others wrote in it.
struct TableText {
    private struct Part {
        /// Nil for a table constraint.
        var column: String?
        var text: String
    }

    private var parts: [Part]
    /// The text after the closing parenthesis.
    private let options: String

    /// Nil if the text isn't a `CREATE TABLE` statement with a list of columns.
    init?(_ sql: String) {
        let text = Array(sql.unicodeScalars)
        var depth = 0
        var start = 0
        var end: Int?
        var found: [String] = []
        var index = 0
        while index < text.count, end == nil {
            if let next = Self.skip(text, index) {
                index = next
                continue
            }
            switch text[index] {
            case "(":
                depth += 1
                if depth == 1 { start = index + 1 }
            case ")":
                depth -= 1
                if depth == 0 {
                    found.append(Self.string(text[start..<index]))
                    end = index + 1
                }
            case "," where depth == 1:
                found.append(Self.string(text[start..<index]))
                start = index + 1
            default: break
            }
            index += 1
        }
        guard let end else { return nil }
        parts = found.map { Part(column: Self.column($0), text: $0) }
        options = Self.string(text[end...])
    }

    /// Returns false if there is no such column.
    mutating func replace(_ column: String, with definition: String) -> Bool {
        guard let index = parts.firstIndex(where: { $0.column?.lowercased() == column.lowercased() }) else {
            return false
        }
        parts[index].text = definition
        return true
    }

    func sql(named name: String) -> String {
        // A part may end with a comment that extends to the end of its line.
        "CREATE TABLE \(name.quotedName)(\(parts.map(\.text).joined(separator: "\n,"))\n)\(options)"
    }

    private static func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }

    /// The index after the quoted text or comment that starts here, if one does.
    private static func skip(_ text: [Unicode.Scalar], _ index: Int) -> Int? {
        switch text[index] {
        case "'", "\"", "`", "[":
            let close: Unicode.Scalar = text[index] == "[" ? "]" : text[index]
            // A doubled quote ends one text and starts the next.
            return (text[(index + 1)...].firstIndex(of: close) ?? text.count - 1) + 1
        case "-" where text[index...].starts(with: "--".unicodeScalars):
            return text[index...].firstIndex(of: "\n") ?? text.count
        case "/" where text[index...].starts(with: "/*".unicodeScalars):
            var end = index + 2
            while end < text.count, !text[end...].starts(with: "*/".unicodeScalars) { end += 1 }
            return min(end + 2, text.count)
        default: return nil
        }
    }

    private static func column(_ part: String) -> String? {
        let text = Array(part.unicodeScalars)
        var index = 0
        while index < text.count {
            if text[index].properties.isWhitespace {
                index += 1
            } else if "-/".unicodeScalars.contains(text[index]), let next = skip(text, index) {
                index = next
            } else {
                break
            }
        }
        guard index < text.count else { return nil }
        guard "'\"`[".unicodeScalars.contains(text[index]) else {
            let word = string(
                text[index...].prefix { !$0.properties.isWhitespace && $0 != "(" && $0 != "," })
            let isConstraint = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"].contains(word.uppercased())
            return isConstraint ? nil : word
        }
        let close: Unicode.Scalar = text[index] == "[" ? "]" : text[index]
        var name = String.UnicodeScalarView()
        index += 1
        while index < text.count {
            if text[index] == close {
                guard close != "]", index + 1 < text.count, text[index + 1] == close else { break }
                index += 1
            }
            name.append(text[index])
            index += 1
        }
        return String(name)
    }
}
