import Foundation
import MartletAgent
import MartletStore

extension JSON {
    static func print(_ object: [String: Any?]) throws {
        Swift.print(try line(object))
    }
}

/// Text for people.
enum Text {
    static func value(_ value: Value?) -> String {
        switch value {
        case nil, .null: return "null"
        case .integer(let value): return "\(value)"
        case .real(let value): return "\(value)"
        case .text(let value): return "\"\(visible(value))\""
        case .blob(let value): return "<\(value.count) bytes>"
        case .rawText(let value): return "<text of \(value.count) bytes>"
        case .reference(let reference): return "\(reference.entity) \(identity(reference.identity))"
        }
    }

    static func identity(_ identity: StableID?) -> String {
        guard let identity, let values = try? identity.values() else { return "?" }
        if values.count == 1, case .blob(let bytes) = values[0], let uuid = UUID(bytes: bytes) {
            return String(uuid.uuidString.lowercased().prefix(8))
        }
        return values.map { value($0) }.joined(separator: ", ")
    }

    static func values(_ values: [String: Value]) -> String {
        values.sorted { $0.key < $1.key }.map { "\(visible($0.key))=\(value($0.value))" }.joined(separator: " ")
    }

    /// Returns the text with its control characters escaped: text from other nodes must not move the cursor, set a
    /// window's title, or break a line.
    static func visible(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.reduce(into: "") { $0 += isControl($1) ? $1.escaped(asASCII: true) : String($1) }
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

    static func time(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
