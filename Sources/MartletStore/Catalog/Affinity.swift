import Foundation

/// Of which storage class a column makes values, where it can
/// (https://www.sqlite.org/datatype3.html#determination_of_column_affinity).
package enum Affinity: Sendable {
    case integer, text, blob, real, numeric

    package init(declaredType: String) {
        let type = declaredType.uppercased()
        func has(_ words: String...) -> Bool { words.contains(where: type.contains) }
        self =
            if has("INT") {
                .integer
            } else if has("CHAR", "CLOB", "TEXT") {
                .text
            } else if type.isEmpty || has("BLOB") || type == "ANY" {
                // ANY is a number's affinity in a table that is not STRICT. What is done for a column without one does
                // for it, too.
                .blob
            } else if has("REAL", "FLOA", "DOUB") {
                .real
            } else {
                .numeric
            }
    }
}

extension Affinity {
    /// True where a column of this affinity keeps the value, or makes one of it from which it can be told: the type of
    /// the column may be another one where the value was written.
    fileprivate func holds(_ value: Value) -> Bool {
        switch (self, value) {
        case (.blob, _), (_, .null), (_, .blob), (_, .rawText), (_, .reference): true
        case (.text, .real(let number)): number.isFinite && Double(Self.text(number)) == number
        // Whole numbers of a column of reals go up to 2^53.
        case (.real, .integer(let number)): Int64(exactly: Double(number)) == number && abs(Double(number)) <= 0x1p53
        case (.text, _), (_, .integer), (_, .real): true
        case (_, .text(let text)): !Self.isNumber(text) || Self.canonical(text, isReal: self == .real)
        }
    }

    /// The same for a value that names its row: text that looks like a number is another name than the number.
    fileprivate func keeps(_ value: Value) -> Bool {
        switch (self, value) {
        case (.text, .integer), (.text, .real): false
        case (.blob, _), (.text, _): true
        case (_, .text(let text)): !Self.isNumber(text)
        default: true
        }
    }

    /// True for the text that a column of text has for the number which the column makes of this one.
    private static func canonical(_ text: String, isReal: Bool) -> Bool {
        if let number = Int64(text) { return !isReal && String(number) == text }
        guard let number = Double(text), number.isFinite else { return false }
        return Self.text(number) == text && (isReal || Int64(exactly: number) == nil)
    }

    /// What SQLite makes of a number in a column of text: 15 digits, and always a point.
    private static func text(_ number: Double) -> String {
        let text = String(format: "%.15g", number)
        if text.contains(".") || !number.isFinite { return text }
        guard let exponent = text.firstIndex(of: "e") else { return text + ".0" }
        return text[..<exponent] + ".0" + text[exponent...]
    }

    /// What SQLite takes for a number (`sqlite3AtoF`): blanks at both ends, a sign, digits with a point, an exponent.
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

    /// The error for a value that a column would make into another one, as a constraint of the table: the row waits,
    /// like one that a `CHECK` refuses.
    package static let refusal = StoreError(
        sqliteCode: 19, message: "a column has another type here, which would change the value")
}

extension EntityColumn {
    /// True where what the column makes of a value tells which value it was. A column that refers to rows holds what
    /// the row's number makes of it.
    ///
    /// - Parameter isName: true for the value of a row's ID, which has to stay as it is.
    package func takes(_ value: Value, asName isName: Bool) -> Bool {
        reference != nil || affinity.holds(value) && (!isName || affinity.keeps(value))
    }

    /// True of a column that keeps all values as they are.
    var hasNoAffinity: Bool { affinity == .blob }
}
