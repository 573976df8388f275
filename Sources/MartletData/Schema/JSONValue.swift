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

    /// Returns the elements of an array in an order that depends on nothing but them. Text that is no array stays as
    /// it is.
    static func sortingElements(_ text: String) -> String {
        guard let elements = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [Any] else { return text }
        let texts = elements.map { element in
            let data = try? JSONSerialization.data(withJSONObject: element, options: [.fragmentsAllowed, .sortedKeys])
            return String(decoding: data ?? Data(), as: UTF8.self)
        }
        return "[" + texts.sorted().joined(separator: ",") + "]"
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
