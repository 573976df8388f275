import Foundation
import MartletStore

/// A property of a Codable value that is stored as JSON.
struct StoredPart {
    private let key: String
    private let isSinglePrecision: Bool

    /// - Throws: ``SwiftDataError/unsupportedPredicate`` if the key under which the value encodes the property is
    ///   unknown, or if the property is represented differently in JSON than in a column.
    init(_ keyPath: AnyKeyPath) throws {
        try self.init(keyPath, of: type(of: keyPath).rootType)
    }

    /// - Parameter root: the type that has the last part of the key path as a property.
    init(_ keyPath: AnyKeyPath, of root: Any.Type) throws {
        let value = type(of: keyPath).valueType
        // In an optional relationship, the last part is optional too.
        let name = "\(keyPath)".split(separator: ".").last?.split(separator: "?").first.map(String.init) ?? ""
        guard CodingKeyReader.has(name, in: root) == true else {
            throw SwiftDataError.unsupportedPredicate.because(
                """
                It is unknown how a \(root) stores \(name.isEmpty ? "this property" : name). Only stored properties \
                that are encoded under their own names can be used.
                """
            )
        }
        guard Self.isPlain(value) || StoredList(value) != nil || Self.hasParts(value) else {
            throw SwiftDataError.unsupportedPredicate.because("SQL can't compare the \(value) in a \(root).")
        }
        key = name
        isSinglePrecision = Self.isSinglePrecision(value)
    }

    func sql(of text: SQLText) -> SQLText {
        let part = SQLText.format("json_extract(@, '$.\"\(key)\"')", text)
        return isSinglePrecision ? .format("\(TextFunctions.singlePrecision)(@)", part) : part
    }

    /// Excludes types whose own columns have another form, such as `Decimal` and `Data`.
    private static func hasParts(_ type: Any.Type) -> Bool {
        !(type is any StorableAttribute.Type) && CodingKeyReader.has("", in: type) != nil
    }

    /// Returns true for types whose values are the same in JSON as in a column.
    static func isPlain(_ type: Any.Type) -> Bool {
        let type = unwrapped(type)
        func isPlainRaw<R: RawRepresentable>(_ type: R.Type) -> Bool { isPlain(R.RawValue.self) }
        if let raw = type as? any RawRepresentable.Type { return isPlainRaw(raw) }
        // Numbers beyond the largest signed one are negative in a column, but not in JSON.
        guard type != UInt64.self, type != UInt.self else { return false }
        return type is any FixedWidthInteger.Type || type is any BinaryFloatingPoint.Type || type == String.self
            || type == Bool.self || type == Date.self || type == UUID.self || type == URL.self
    }

    /// Returns true for types whose values have fewer digits in JSON than in a column: 0.1 and not
    /// 0.10000000149011612.
    static func isSinglePrecision(_ type: Any.Type) -> Bool {
        let type = unwrapped(type)
        func isRawSingle<R: RawRepresentable>(_ type: R.Type) -> Bool { isSinglePrecision(R.RawValue.self) }
        if let raw = type as? any RawRepresentable.Type { return isRawSingle(raw) }
        return type == Float.self
    }
}
