package import MartletStore

/// Formats rows for people.
package enum ValueText {
    package static func text(_ row: [String: Value]?) -> String {
        guard let row else { return "absent" }
        return "{" + row.sorted { $0.key < $1.key }.map { "\($0.key)=\(text($0.value))" }.joined(separator: " ") + "}"
    }

    package static func text(_ identity: StableID) -> String {
        guard let values = try? identity.values() else { return "?" }
        return "[" + values.map(text).joined(separator: ", ") + "]"
    }

    package static func text(_ value: Value) -> String {
        switch value {
        case .null: "NULL"
        case .integer(let value): "\(value)"
        case .real(let value): "\(value)"
        case .text(let value): value.utf8.count > 40 ? "'\(value.prefix(20))...'" : "'\(value)'"
        // The first bytes are the same for all rows to which one store has assigned IDs.
        case .blob(let value), .rawText(let value): "x" + Hex.text(value.suffix(6))
        case .reference(let reference): "\(reference.entity)\(text(reference.identity))"
        }
    }
}
