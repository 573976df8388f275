import MartletCore

/// The stable ID of a row as text, for columns that refer to the row.
enum RowName {
    /// Returns the UUID that Martlet assigned, the text that identifies the row, or else the values of the ID as an
    /// array in JSON.
    static func text(_ identity: StableID) -> String {
        guard let values = try? identity.values() else { return Hex.text(identity.bytes) }
        if values.count == 1 {
            switch values[0] {
            case .blob(let bytes): if let uuid = NodeID(bytes: bytes) { return uuid.description.lowercased() }
            case .text(let text): return text
            default: break
            }
        }
        var json = JSONText()
        json.raw("[")
        for (index, value) in values.enumerated() {
            if index > 0 { json.raw(",") }
            plainType(of: value).write(value, to: &json)
        }
        json.raw("]")
        return String(decoding: json.bytes, as: UTF8.self)
    }

    private static func plainType(of value: Value) -> ConnectType {
        switch value {
        case .integer: .integer
        case .real: .double
        case .blob, .rawText: .bytes
        case .null, .text, .reference: .string
        }
    }
}
