import MartletCore

/// A decimal number of any size, as text without an exponent.
struct DecimalText: Sendable, Equatable {
    let text: String

    /// More than MySQL has, and more than anybody has stored in PostgreSQL. Reading takes the square of the time.
    private static let maxBytes = 4096
    private static let maxScale = 20_000

    /// Reads a number that is written in digits, with a point perhaps, but no exponent and no needless zero before it.
    init?(_ text: String) {
        var rest = Substring(text).utf8
        func digits() -> Int {
            let count = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }.count
            rest = rest.dropFirst(count)
            return count
        }
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let beginsWithZero = rest.first == UInt8(ascii: "0")
        let whole = digits()
        guard whole == 1 || whole > 1 && !beginsWithZero else { return nil }
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            guard digits() > 0 else { return nil }
        }
        guard rest.isEmpty else { return nil }
        self.text = text
    }

    /// - Parameters:
    ///   - unscaled: in two's complement, the highest byte first.
    ///   - scale: the number of digits after the point. Negative: the number of zeros before it.
    /// - Returns: nil if there is no byte, or if the number is larger than anybody's.
    init?(unscaled: [UInt8], scale: Int64) {
        guard !unscaled.isEmpty, unscaled.count <= Self.maxBytes, scale.magnitude <= Self.maxScale else { return nil }
        let isNegative = unscaled[0] & 0x80 != 0
        var digits = Self.digits(isNegative ? Self.negated(unscaled) : unscaled)
        if scale < 0, digits != "0" {
            digits += String(repeating: "0", count: Int(-scale))
        } else if scale > 0 {
            let scale = Int(scale)
            digits = String(repeating: "0", count: max(0, scale + 1 - digits.count)) + digits
            digits.insert(".", at: digits.index(digits.endIndex, offsetBy: -scale))
        }
        text = isNegative ? "-" + digits : digits
    }

    /// The number as an integer, if it is one of 64 bits.
    var whole: Int64? {
        let parts = text.split(separator: ".", maxSplits: 1)
        guard parts.count == 1 || parts[1].utf8.allSatisfy({ $0 == UInt8(ascii: "0") }) else { return nil }
        return Int64(parts[0])
    }

    /// The number as SQLite would store it, if that is exactly the number. Nil if it is not, or if nobody knows.
    var exactValue: Value? {
        if let whole { return .integer(whole) }
        let zeros = text.utf8.reversed().prefix { $0 == UInt8(ascii: "0") }.count
        guard let real = Double(text), text.dropLast(zeros) == "\(real)" else { return nil }
        return .real(real)
    }

    private static func negated(_ bytes: [UInt8]) -> [UInt8] {
        var carry: UInt8 = 1
        var result = bytes.map { ~$0 }
        for index in result.indices.reversed() {
            let (sum, overflow) = result[index].addingReportingOverflow(carry)
            result[index] = sum
            carry = overflow ? 1 : 0
        }
        // The lowest number is its own complement, which is right without a sign.
        return result
    }

    /// Returns the digits of an unsigned number: nine at a time.
    private static func digits(_ bytes: [UInt8]) -> String {
        var limbs: [UInt32] = []
        var number = bytes.drop { $0 == 0 }
        while !number.isEmpty {
            let group = number.suffix(4)
            limbs.append(group.reduce(0) { $0 << 8 | UInt32($1) })
            number = number.dropLast(group.count)
        }
        var groups: [String] = []
        while !limbs.isEmpty {
            var rest: UInt64 = 0
            for index in limbs.indices.reversed() {
                let part = rest << 32 | UInt64(limbs[index])
                limbs[index] = UInt32(part / 1_000_000_000)
                rest = part % 1_000_000_000
            }
            while limbs.last == 0 { limbs.removeLast() }
            let group = String(rest)
            groups.append(limbs.isEmpty ? group : String(repeating: "0", count: 9 - group.count) + group)
        }
        return groups.isEmpty ? "0" : groups.reversed().joined()
    }
}
