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
        case .reference(let reference): return "\(visible(reference.entity)) \(identity(reference.identity))"
        }
    }

    /// Returns the values of the ID, or the last eight digits of a UUID. The first ones are the same for all rows to
    /// which one store has assigned IDs.
    static func identity(_ identity: StableID?) -> String {
        guard let identity, let values = try? identity.values() else { return "?" }
        if values.count == 1, case .blob(let bytes) = values[0], let uuid = UUID(bytes: bytes) {
            return String(uuid.uuidString.lowercased().suffix(8))
        }
        return values.map { value($0) }.joined(separator: ", ")
    }

    static func values(_ values: [String: Value]) -> String {
        values.sorted { $0.key < $1.key }.map { "\(visible($0.key))=\(value($0.value))" }.joined(separator: " ")
    }

    /// Returns the text with its control characters escaped.
    static func visible(_ text: String) -> String { EscapedText.escaped(text) }

    static func time(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
