/// Unsigned integers in as few bytes as they need: seven bits per byte, the lowest first, with the highest bit set in
/// all bytes but the last.
package enum Varint {
    package static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        var value = value
        while value >= 0x80 {
            bytes.append(UInt8(value & 0x7f) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }

    /// Appends the number of bytes, and then the bytes.
    package static func append(counted: [UInt8], to bytes: inout [UInt8]) {
        append(UInt64(counted.count), to: &bytes)
        bytes.append(contentsOf: counted)
    }

    /// Reads the number at `place`, and advances `place` past it. Returns nil if the bytes end before the number does,
    /// or if the number takes more bytes than 64 bits need.
    package static func read(_ bytes: UnsafeRawBufferPointer, _ place: inout Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
            if shift > 63 { return nil }
        }
        return nil
    }
}
