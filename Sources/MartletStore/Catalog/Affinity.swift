import Foundation

/// The storage class to which a column converts values, if it can
/// (https://www.sqlite.org/datatype3.html#determination_of_column_affinity).
package enum Affinity: Sendable {
    case integer, text, blob, real, numeric

    /// - Parameter isStrict: Whether the table is STRICT. There, ANY stores all values unchanged; elsewhere, it is a
    ///   name that means nothing to SQLite, and its affinity is numeric (https://www.sqlite.org/stricttables.html).
    package init(declaredType: String, isStrict: Bool) {
        let type = declaredType.uppercased()
        func has(_ words: String...) -> Bool { words.contains(where: type.contains) }
        self =
            if has("INT") {
                .integer
            } else if has("CHAR", "CLOB", "TEXT") {
                .text
            } else if type.isEmpty || has("BLOB") || isStrict && type == "ANY" {
                .blob
            } else if has("REAL", "FLOA", "DOUB") {
                .real
            } else {
                .numeric
            }
    }
}

extension Affinity {
    /// Returns whether a column of this affinity keeps the value, or converts it to one that tells what it was: the
    /// column may have had another type where the value was written.
    fileprivate func holds(_ value: Value) -> Bool {
        switch (self, value) {
        case (.blob, _), (_, .null), (_, .blob), (_, .rawText), (_, .reference): true
        case (.text, .real(let number)): number.isFinite && Double(Self.text(number)) == number
        // A REAL column holds whole numbers exactly up to 2^53.
        case (.real, .integer(let number)): Int64(exactly: Double(number)) == number && abs(Double(number)) <= 0x1p53
        case (.text, _), (_, .integer), (_, .real): true
        case (_, .text(let text)): !Self.isNumber(text) || Self.canonical(text, isReal: self == .real)
        }
    }

    /// Returns true if a column of this affinity stores the value unchanged because the value is of its own type, as
    /// nearly all values are.
    package func isOwnType(of value: Value) -> Bool {
        switch (self, value) {
        case (.blob, _), (_, .null), (_, .blob), (.text, .text), (.integer, .integer), (.numeric, .integer),
            (.real, .real):
            true
        default: false
        }
    }

    /// Returns whether a column of this affinity keeps a value of the row identity unchanged: text that looks like a
    /// number is a different ID than the number, and so is 1.0 than 1.
    fileprivate func keeps(_ value: Value) -> Bool { converted(value) == value }

    /// Returns what a column of this affinity stores for the value.
    package func converted(_ value: Value) -> Value {
        switch (self, value) {
        case (.text, .integer(let number)): return .text("\(number)")
        case (.text, .real(let number)): return .text(Self.text(number))
        case (.real, .integer(let number)): return .real(Double(number))
        case (.integer, .real(let number)), (.numeric, .real(let number)):
            // `sqlite3VdbeIntegerAffinity` leaves the lowest integer alone.
            guard number > -0x1p63, let whole = Int64(exactly: number) else { return value }
            return .integer(whole)
        case (.integer, .text(let text)), (.numeric, .text(let text)), (.real, .text(let text)):
            guard Self.isNumber(text) else { return value }
            let digits = text.trimmingCharacters(in: .whitespacesAndNewlines)
            if self != .real, let whole = Int64(digits) { return .integer(whole) }
            return Double(digits).map { converted(.real($0)) } ?? value
        default: return value
        }
    }

    /// Returns whether a TEXT column would produce exactly this text from the number to which this column converts it.
    private static func canonical(_ text: String, isReal: Bool) -> Bool {
        if let number = Int64(text) { return !isReal && String(number) == text }
        guard let number = Double(text), number.isFinite else { return false }
        return Self.text(number) == text && (isReal || Int64(exactly: number) == nil)
    }

    /// Returns the text to which SQLite converts a number in a TEXT column: 15 digits, and always a decimal point.
    private static func text(_ number: Double) -> String {
        let text = String(format: "%.15g", number)
        if text.contains(".") || !number.isFinite { return text }
        guard let exponent = text.firstIndex(of: "e") else { return text + ".0" }
        return text[..<exponent] + ".0" + text[exponent...]
    }

    /// Returns whether SQLite reads the text as a number (`sqlite3AtoF`): blanks at both ends, a sign, digits with a
    /// point, an exponent.
    private static func isNumber(_ text: String) -> Bool {
        var rest = Substring(text).utf8
        func skip(_ isTaken: (UInt8) -> Bool) -> Int {
            let count = rest.prefix(while: isTaken).count
            rest = rest.dropFirst(count)
            return count
        }
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0d ~= byte }
        func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
        func sign() {
            if let first = rest.first, first == UInt8(ascii: "+") || first == UInt8(ascii: "-") {
                rest = rest.dropFirst()
            }
        }
        _ = skip(isBlank)
        sign()
        var digits = skip(isDigit)
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            digits += skip(isDigit)
        }
        guard digits > 0 else { return false }
        if let first = rest.first, first == UInt8(ascii: "e") || first == UInt8(ascii: "E") {
            rest = rest.dropFirst()
            sign()
            guard skip(isDigit) > 0 else { return false }
        }
        _ = skip(isBlank)
        return rest.isEmpty
    }

    /// The error for a value that a column would convert to another one, in the form of a constraint failure: the
    /// change stays pending, like one that a `CHECK` refuses.
    package static let refusal = StoreError(
        sqliteCode: 19, message: "a column has another type here, which would change the value")
}

extension EntityColumn {
    /// Returns whether the value can be told from what the column stores for it. A column that refers to rows stores
    /// the local key of the row.
    ///
    /// - Parameter isName: True for a value of a row's ID, which must be stored unchanged.
    package func takes(_ value: Value, asName isName: Bool) -> Bool {
        reference != nil || affinity.holds(value) && (!isName || affinity.keeps(value))
    }

    /// Whether the column stores all values unchanged.
    var hasNoAffinity: Bool { affinity == .blob }
}
