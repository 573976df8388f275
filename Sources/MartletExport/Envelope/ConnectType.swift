package import MartletCore
package import MartletStore

/// A type of Kafka Connect's schemas: how a value is written, and what it means.
package struct ConnectType: Equatable, Sendable {
    /// `boolean`, `int32`, `int64`, `double`, `string` or `bytes`.
    package var type: String
    /// The name of the logical type, of version 1.
    package var name: String?

    package init(_ type: String, _ name: String? = nil) {
        self.type = type
        self.name = name
    }

    static let boolean = ConnectType("boolean")
    static let integer = ConnectType("int64")
    static let double = ConnectType("double")
    static let string = ConnectType("string")
    static let bytes = ConnectType("bytes")
    static let uuid = ConnectType("string", "io.debezium.data.Uuid")
    static let json = ConnectType("string", "io.debezium.data.Json")
    /// Days since 1970.
    static let date = ConnectType("int32", "io.debezium.time.Date")
    /// Milliseconds since 1970, of a time without a time zone.
    static let timestamp = ConnectType("int64", "io.debezium.time.Timestamp")

    /// Whether numbers stand for dates or times.
    var isTime: Bool { self == Self.date || self == Self.timestamp }

    /// Returns the type of a column's values as far as the declaration tells: SQLite also stores others.
    package init(of column: EntityColumn) {
        // The columns of one reference hold the IDs of rows.
        if column.reference != nil {
            self = .string
            return
        }
        let words = column.declaredType.uppercased().prefix { $0.isLetter }
        self =
            switch (words, column.affinity) {
            case ("BOOL", _), ("BOOLEAN", _): .boolean
            case ("DATE", _): .date
            case ("DATETIME", _), ("TIMESTAMP", _): .timestamp
            case ("JSON", _): .json
            case ("UUID", _): .uuid
            case (_, .integer): .integer
            case (_, .real), (_, .numeric): .double
            case (_, .blob) where !column.declaredType.isEmpty && column.declaredType.uppercased() != "ANY": .bytes
            case (_, .text), (_, .blob): .string
            }
    }

    /// Returns the type that a value has in a record. It is another one than the column's where the value does not fit
    /// that: it would be lost otherwise.
    package func type(of value: Value) -> ConnectType {
        switch (value, self) {
        case (.null, _), (.reference, .string): self
        case (.integer(let number), .boolean) where number == 0 || number == 1: self
        case (.integer(let number), .double) where number.magnitude <= 1 << 53: self
        case (.integer, _): .integer
        case (.real, _): .double
        case (.text(let text), .date): CivilTime.days(text) == nil ? .string : self
        case (.text(let text), .timestamp): CivilTime.milliseconds(text) == nil ? .string : self
        case (.text, _): type == "string" ? self : .string
        case (.blob, _), (.rawText, _): .bytes
        case (.reference, _): .string
        }
    }

    /// Writes a value that has this type.
    func write(_ value: Value, to json: inout JSONText) {
        switch value {
        case .null: json.raw("null")
        case .integer(let number):
            switch self {
            case .boolean: json.raw(number == 1 ? "true" : "false")
            case .double: json.real(Double(number))
            default: json.integer(number)
            }
        case .real(let number): json.real(number)
        case .text(let text):
            switch self {
            case .date: json.integer(CivilTime.days(text) ?? 0)
            case .timestamp: json.integer(CivilTime.milliseconds(text) ?? 0)
            default: json.string(text)
            }
        case .blob(let bytes), .rawText(let bytes): json.base64(bytes)
        case .reference(let reference): json.string(RowName.text(reference.identity))
        }
    }

    /// Writes the schema of a field.
    func writeSchema(of field: String, isOptional: Bool, to json: inout JSONText) {
        json.raw(#"{"type":"\#(type)","optional":\#(isOptional)"#)
        if let name { json.raw(#","name":"\#(name)","version":1"#) }
        json.raw(#","field":"#)
        json.string(field)
        json.raw("}")
    }
}
