import Foundation
import MartletStore

/// A property of a Codable value that is stored as JSON.
struct StoredPart {
    private let key: String
    private let form: NumberForm

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
        form = NumberForm(value)
    }

    func sql(of text: SQLText) -> SQLText { form.column(.format("json_extract(@, '$.\"\(key)\"')", text)) }

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

}

/// How JSON represents the values of a type differently than a column.
enum NumberForm {
    case same
    /// JSON has no infinities, so they are text there.
    case double
    /// JSON also has fewer digits: 0.1 and not 0.10000000149011612.
    case single

    init(_ type: Any.Type) {
        let type = unwrapped(type)
        func raw<R: RawRepresentable>(_ type: R.Type) -> NumberForm { NumberForm(R.RawValue.self) }
        if let type = type as? any RawRepresentable.Type {
            self = raw(type)
        } else if type == Float.self {
            self = .single
        } else {
            self = type is any BinaryFloatingPoint.Type || type == Date.self ? .double : .same
        }
    }

    /// Returns the SQL of a value from JSON in the form that a column has.
    func column(_ value: SQLText) -> SQLText {
        guard self != .same else { return value }
        let number = SQLText.format(
            "(CASE @ WHEN 'Infinity' THEN 9e999 WHEN '-Infinity' THEN -9e999 ELSE @ END)", value, value)
        return self == .single ? .format("\(TextFunctions.singlePrecision)(@)", number) : number
    }
}
