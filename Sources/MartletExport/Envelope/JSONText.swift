import Foundation

/// Text in JSON that is written piece by piece.
struct JSONText {
    private(set) var bytes: [UInt8] = []

    /// Appends text that is JSON already.
    mutating func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func raw(_ text: [UInt8]) { bytes.append(contentsOf: text) }

    mutating func string(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): raw("\\\"")
            case UInt8(ascii: "\\"): raw("\\\\")
            case 10: raw("\\n")
            case 13: raw("\\r")
            case 9: raw("\\t")
            case 0..<32: raw("\\u00" + (byte < 16 ? "0" : "") + String(byte, radix: 16))
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func string(_ text: String?) {
        if let text { string(text) } else { raw("null") }
    }

    mutating func integer(_ value: Int64) { raw(String(value)) }

    /// JSON has no infinity. A number beyond the range of a double stands for it: parsers that read doubles return
    /// infinity for it. SQLite stores NaN as NULL.
    mutating func real(_ value: Double) {
        if value.isNaN { return raw("null") }
        if value.isInfinite { return raw(value < 0 ? "-1e999" : "1e999") }
        raw("\(value)")
    }

    mutating func base64(_ blob: [UInt8]) { raw("\"\(Data(blob).base64EncodedString())\"") }

    /// Returns the text as a string in JSON.
    static func quoted(_ text: String) -> String {
        var json = JSONText()
        json.string(text)
        return String(decoding: json.bytes, as: UTF8.self)
    }

    /// Returns an object in JSON, with its members in the order of their names.
    ///
    /// - Parameter members: their values in JSON, by their names.
    static func object(_ members: [String: String]) -> String {
        let members = members.sorted { $0.key < $1.key }.map { "\(quoted($0.key)):\($0.value)" }
        return "{\(members.joined(separator: ","))}"
    }
}
