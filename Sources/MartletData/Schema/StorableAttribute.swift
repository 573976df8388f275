public import MartletStore

/// A type whose values are stored in a column as they are, readable and writable for any program.
///
/// Other Codable types are stored as JSON, and those with a raw value as the raw value.
public protocol StorableAttribute: SendableMetatype {
    /// The column's declared type: INTEGER, REAL, TEXT or BLOB.
    static var columnType: String { get }
    /// True for optionals, whose column may be NULL.
    static var isOptional: Bool { get }
    var storedValue: Value { get }
    /// Nil if the column contains something else.
    init?(storedValue: Value)
    /// Returns whether ``init(storedValue:)`` would succeed. Called for every fetched value.
    static func accepts(_ value: Value) -> Bool
}

extension StorableAttribute {
    public static var isOptional: Bool { false }
    public static func accepts(_ value: Value) -> Bool { Self(storedValue: value) != nil }
}

extension StorableAttribute where Self: FixedWidthInteger {
    public static var columnType: String { "INTEGER" }
    /// Unsigned numbers beyond the largest signed one are stored as negative numbers.
    public var storedValue: Value { .integer(Int64(truncatingIfNeeded: self)) }
    public static func accepts(_ value: Value) -> Bool {
        if case .integer = value, Self.bitWidth == 64 { return true }
        return Self(storedValue: value) != nil
    }
    public init?(storedValue: Value) {
        switch storedValue {
        case .integer(let value):
            if let exact = Self(exactly: value) {
                self = exact
            } else if Self.bitWidth == 64 {
                self = Self(truncatingIfNeeded: value)
            } else {
                return nil
            }
        case .real(let value):
            guard let exact = Self(exactly: value) else { return nil }
            self = exact
        default: return nil
        }
    }
}

extension Int: StorableAttribute {}
extension Int8: StorableAttribute {}
extension Int16: StorableAttribute {}
extension Int32: StorableAttribute {}
extension Int64: StorableAttribute {}
extension UInt: StorableAttribute {}
extension UInt8: StorableAttribute {}
extension UInt16: StorableAttribute {}
extension UInt32: StorableAttribute {}
extension UInt64: StorableAttribute {}

extension Bool: StorableAttribute {
    public static var columnType: String { "INTEGER" }
    public static func accepts(_ value: Value) -> Bool { if case .integer = value { true } else { false } }
    public var storedValue: Value { .integer(self ? 1 : 0) }
    public init?(storedValue: Value) {
        guard case .integer(let value) = storedValue else { return nil }
        self = value != 0
    }
}

extension Double: StorableAttribute {
    public static var columnType: String { "REAL" }
    public static func accepts(_ value: Value) -> Bool { value.isNumber }
    /// A save rejects not-a-number, which SQLite can't represent.
    public var storedValue: Value { .real(self) }
    public init?(storedValue: Value) {
        switch storedValue {
        case .real(let value): self = value
        case .integer(let value): self = Double(value)
        default: return nil
        }
    }
}

extension Float: StorableAttribute {
    public static var columnType: String { "REAL" }
    public static func accepts(_ value: Value) -> Bool { value.isNumber }
    public var storedValue: Value { Double(self).storedValue }
    public init?(storedValue: Value) {
        guard let value = Double(storedValue: storedValue) else { return nil }
        self = Float(value)
    }
}

extension String: StorableAttribute {
    public static var columnType: String { "TEXT" }
    public static func accepts(_ value: Value) -> Bool { if case .text = value { true } else { false } }
    public var storedValue: Value { .text(self) }
    public init?(storedValue: Value) {
        guard case .text(let text) = storedValue else { return nil }
        self = text
    }
}

extension Date: StorableAttribute {
    public static var columnType: String { "REAL" }
    public static func accepts(_ value: Value) -> Bool { value.isNumber }
    /// Seconds since 1970. Fractions below a quarter of a microsecond are lost.
    public var storedValue: Value { timeIntervalSince1970.storedValue }
    public init?(storedValue: Value) {
        guard let seconds = Double(storedValue: storedValue) else { return nil }
        self.init(timeIntervalSince1970: seconds)
    }
}

extension Data: StorableAttribute {
    public static var columnType: String { "BLOB" }
    public static func accepts(_ value: Value) -> Bool {
        switch value {
        case .blob, .text: true
        default: false
        }
    }
    public var storedValue: Value { .blob(Array(self)) }
    public init?(storedValue: Value) {
        switch storedValue {
        case .blob(let bytes): self.init(bytes)
        case .text(let text): self.init(text.utf8)
        default: return nil
        }
    }
}

extension UUID: StorableAttribute {
    public static var columnType: String { "TEXT" }
    public var storedValue: Value { .text(uuidString) }
    public init?(storedValue: Value) {
        guard case .text(let text) = storedValue else { return nil }
        self.init(uuidString: text)
    }
}

extension URL: StorableAttribute {
    public static var columnType: String { "TEXT" }
    public var storedValue: Value { .text(absoluteString) }
    public init?(storedValue: Value) {
        guard case .text(let text) = storedValue else { return nil }
        self.init(string: text)
    }
}

extension Decimal: StorableAttribute {
    /// Text, so that no digit is lost. Fetches sort and order it as a number; equality compares the text.
    public static var columnType: String { "TEXT" }
    public var storedValue: Value { .text(description) }
    public init?(storedValue: Value) {
        switch storedValue {
        case .text("NaN"): self = .nan
        // `init(string:)` takes the number that the text begins with.
        case .text(let text) where text.isDecimalNumber: self.init(string: text)
        case .integer(let value): self.init(value)
        case .real(let value): self.init(value)
        default: return nil
        }
    }
}

extension Optional: StorableAttribute where Wrapped: StorableAttribute {
    public static func accepts(_ value: Value) -> Bool { value.isNull || Wrapped.accepts(value) }
    public static var columnType: String { Wrapped.columnType }
    public static var isOptional: Bool { true }
    public var storedValue: Value { self?.storedValue ?? .null }
    public init?(storedValue: Value) {
        if storedValue.isNull {
            self = .none
        } else if let wrapped = Wrapped(storedValue: storedValue) {
            self = wrapped
        } else {
            return nil
        }
    }
}

extension String {
    /// True if the whole text is a number: a sign, digits with a point, an exponent.
    fileprivate var isDecimalNumber: Bool {
        var rest = utf8[...]
        func skip(_ isTaken: (UInt8) -> Bool) -> Int {
            let count = rest.prefix(while: isTaken).count
            rest = rest.dropFirst(count)
            return count
        }
        func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
        func skipSign() {
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        }
        skipSign()
        var digits = skip(isDigit)
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            digits += skip(isDigit)
        }
        guard digits > 0 else { return false }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest = rest.dropFirst()
            skipSign()
            guard skip(isDigit) > 0 else { return false }
        }
        return rest.isEmpty
    }
}

extension Value {
    fileprivate var isNumber: Bool {
        switch self {
        case .integer, .real: true
        default: false
        }
    }
}
