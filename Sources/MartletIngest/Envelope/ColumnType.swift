import MartletCore
import MartletStore

/// What a column is for, by its declaration: the same rule as that of the export.
struct ColumnType: Sendable, Equatable {
    enum Kind: Sendable {
        case boolean, date, time, timestamp, json, uuid, integer, real, numeric, bytes, text, any
    }

    let kind: Kind
    private let affinity: Affinity

    init(declared: String) {
        // In a table that is not STRICT, ANY is numeric. A value that such a column changes stays pending.
        affinity = Affinity(declaredType: declared, isStrict: true)
        let type = declared.uppercased()
        kind =
            switch (type.prefix { $0.isLetter }, affinity) {
            case ("BOOL", _), ("BOOLEAN", _): .boolean
            case ("DATE", _): .date
            case ("TIME", _): .time
            case ("DATETIME", _), ("TIMESTAMP", _): .timestamp
            case ("JSON", _), ("JSONB", _): .json
            case ("UUID", _): .uuid
            case (_, .integer): .integer
            case (_, .real): .real
            case (_, .numeric): .numeric
            case (_, .blob): type.isEmpty || type == "ANY" ? .any : .bytes
            case (_, .text): .text
            }
    }

    /// Whether the column takes numbers as such, also those that stand for times.
    var isNumeric: Bool {
        switch kind {
        case .integer, .real, .numeric: true
        case .boolean, .date, .time, .timestamp, .json, .uuid, .bytes, .text, .any: false
        }
    }

    /// Returns the value for a number: as the column stores it, where that is the same number.
    func value(_ number: Int64) -> Value {
        switch affinity {
        case .text: .text(String(number))
        // A REAL column does not hold it exactly otherwise; then the change stays pending.
        case .real where number.magnitude <= 1 << 53: .real(Double(number))
        case .integer, .real, .numeric, .blob: .integer(number)
        }
    }

    /// Returns the value for a number: as the column stores it.
    func value(_ number: Double) -> Value {
        if number.isNaN { return .null }
        return affinity == .text ? .text("\(number)") : affinity.converted(.real(number))
    }

    /// Returns the value for JSON. A column with the type JSON stores a number as such.
    func value(json text: String) -> Value {
        (affinity == .numeric ? DecimalText(text)?.exactValue : nil) ?? .text(text)
    }

    /// Returns the value for a decimal number: exact in text, and as the column stores it elsewhere.
    ///
    /// - Returns: nil if the number is beyond the range of a double.
    func value(_ number: DecimalText) -> Value? {
        switch affinity {
        case .text, .blob: return .text(number.text)
        case .integer, .numeric:
            if let whole = number.whole { return value(whole) }
        case .real: break
        }
        guard let real = Double(number.text), real.isFinite else { return nil }
        return value(real)
    }
}
