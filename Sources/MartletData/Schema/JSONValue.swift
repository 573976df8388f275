import Foundation
import MartletStore

/// Converts Codable values to and from human-readable text: JSON with sorted keys.
enum JSONValue {
    static func encode(_ value: some Encodable) throws -> Value {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .secondsSince1970
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
        return text == "null" ? .null : .text(text)
    }

    /// Nil if the column contains something that isn't such a value.
    static func decode<T: Decodable>(_ type: T.Type, _ value: Value) -> T? {
        let text: String
        switch value {
        case .text(let stored): text = stored
        case .null: text = "null"
        default: return nil
        }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        return try? decoder.decode(type, from: Data(text.utf8))
    }
}
