/// Bytes as hexadecimal digits.
package enum Hex {
    /// Returns two lowercase digits for each byte.
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: Array(bytes).withUnsafeBytes { digits($0) }, as: UTF8.self)
    }

    /// Returns the same in ASCII.
    package static func digits(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 2 * bytes.count) { digits, count in
            for byte in bytes {
                digits.initializeElement(at: count, to: digit(byte >> 4))
                digits.initializeElement(at: count + 1, to: digit(byte & 15))
                count += 2
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }

    /// Returns the value of a digit in either case. Nil for any other character.
    package static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
