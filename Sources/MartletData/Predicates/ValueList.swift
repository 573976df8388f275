import MartletStore

/// The SQL that tests whether a list of values contains an element.
struct ValueList {
    private let values: [Value]

    /// Up to this number, each value is a parameter. SQLite allows 32,766 parameters in one statement.
    static let mostParameters = 1_000
    /// The largest number of parameters for values: the rest of the statement needs some too.
    static let limit = 30_000

    init(_ values: [Value]) { self.values = values }

    /// - Throws: ``SwiftDataError/unsupportedPredicate`` for a long list of values that JSON can't represent exactly.
    func contains(_ element: SQLText) throws -> SQLText {
        guard values.count > Self.mostParameters else { return parameters(element) }
        guard let json else {
            guard values.count <= Self.limit else {
                throw SwiftDataError.unsupportedPredicate.because(
                    "A list of more than 30,000 values may hold only integers and strings. Fetch in several parts.")
            }
            return parameters(element)
        }
        return .format("(@ IN (SELECT value FROM json_each(@)))", element, SQLText("?", [.text(json)]))
    }

    private func parameters(_ element: SQLText) -> SQLText {
        .format("(@ IN (@))", element, SQLText(values.map { _ in "?" }.joined(separator: ", "), values))
    }

    /// All values as one parameter. Nil for values that SQLite's JSON wouldn't return unchanged.
    private var json: String? {
        var text = "["
        for (index, value) in values.enumerated() {
            if index > 0 { text += "," }
            switch value {
            case .integer(let number): text += "\(number)"
            case .text(let string):
                guard let quoted = Self.quoted(string) else { return nil }
                text += quoted
            default: return nil
            }
        }
        return text + "]"
    }

    private static func quoted(_ string: String) -> String? {
        var text = "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\0": return nil
            case "\"", "\\":
                text += "\\"
                text.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}
