import Foundation

/// A value in JSON.
///
/// Of two members with one name, the first counts; `JSONDecoder` has it so.
enum JSON: Sendable, Equatable {
    case null
    case boolean(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    var text: String? { if case .string(let text) = self { text } else { nil } }
    var real: Double? { if case .number(let number) = self { number.real } else { nil } }
    var isNull: Bool { self == .null }
    var isScalar: Bool {
        switch self {
        case .null, .boolean, .number, .string: true
        case .array, .object: false
        }
    }

    /// Whether the value has the form of a decimal that carries its scale.
    var isVariableDecimal: Bool {
        if case .object(let members) = self { Set(members.keys) == ["scale", "value"] } else { false }
    }
}

extension JSON: Decodable {
    /// No record of Debezium nests deeper.
    private static let maxDepth = 64

    init(parsing bytes: [UInt8]) throws {
        self = try JSONDecoder().decode(JSON.self, from: Data(bytes))
    }

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let text = try? value.decode(String.self) {
            self = .string(text)
        } else if let number = JSONNumber(value) {
            self = .number(number)
        } else if let flag = try? value.decode(Bool.self) {
            self = .boolean(flag)
        } else if decoder.codingPath.count > Self.maxDepth {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "nested too deep"))
        } else if let members = try? decoder.container(keyedBy: MemberName.self) {
            var object: [String: JSON] = [:]
            for name in members.allKeys { object[name.stringValue] = try members.decode(JSON.self, forKey: name) }
            self = .object(object)
        } else {
            var elements = try decoder.unkeyedContainer()
            var array: [JSON] = []
            while !elements.isAtEnd { array.append(try elements.decode(JSON.self)) }
            self = .array(array)
        }
    }
}

/// The name of a member of an object.
struct MemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}

extension JSON {
    /// The value as JSON, with the members of objects in the order of their names: the same on every node.
    func serialized() throws(IngestError) -> String {
        var text = ""
        try write(to: &text)
        return text
    }

    private func write(to text: inout String) throws(IngestError) {
        switch self {
        case .null: text += "null"
        case .boolean(let flag): text += flag ? "true" : "false"
        case .number(let number): text += try number.text()
        case .string(let string): Self.write(string, to: &text)
        case .array(let elements):
            text += "["
            for (index, element) in elements.enumerated() {
                if index > 0 { text += "," }
                try element.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { text += "," }
                Self.write(member.key, to: &text)
                text += ":"
                try member.value.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case "\u{0}"..."\u{1f}":
                text += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
