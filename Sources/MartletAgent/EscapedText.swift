/// Escapes text from other nodes and programs before people see it: names, reasons and values.
package enum EscapedText {
    /// Returns the text with its control characters escaped: text from other nodes must not move the cursor, set a
    /// window's title, or break a line.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.reduce(into: "") { $0 += isControl($1) ? $1.escaped(asASCII: true) : String($1) }
    }

    /// Returns the text with all control characters escaped, except for line breaks: for a message of this program that
    /// has several lines, and quotes text from elsewhere.
    package static func escapedLines(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { escaped(String($0)) }
            .joined(separator: "\n")
    }

    /// Also returns true for characters that change the direction of the text after them:
    /// https://www.unicode.org/reports/tr9/#Explicit_Directional_Embeddings
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: ("\u{202a}"..."\u{202e}").contains(scalar) || ("\u{2066}"..."\u{2069}").contains(scalar)
        default: false
        }
    }
}
