import MartletCore

/// The checksum of a payload: the CRC-32 of zlib, PNG and Ethernet.
package enum CRC32 {
    package static func of(_ bytes: [UInt8]) -> UInt32 { ~add(bytes, to: .max) }

    /// The checksum of bytes that come in pieces.
    package struct Sum {
        private var sum: UInt32 = .max

        package init() {}

        package mutating func add(_ bytes: [UInt8]) { sum = CRC32.add(bytes, to: sum) }

        /// The checksum so far, as eight hexadecimal digits in ASCII.
        package var digits: [UInt8] { CRC32.digits(~sum) }
    }

    private static func add(_ bytes: [UInt8], to previous: UInt32) -> UInt32 {
        var sum = previous
        bytes.withUnsafeBytes { bytes in
            tables.withUnsafeBufferPointer { tables in
                var place = 0
                // Eight bytes at a time, since their lookups are independent: each byte has a table for the number of
                // bytes that follow it in the block.
                while bytes.count - place >= 8 {
                    let block = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
                    let mixed = block ^ UInt64(sum)
                    sum = 0
                    for byte in 0..<8 {
                        sum ^= tables[(7 - byte) << 8 | Int(truncatingIfNeeded: mixed >> (8 * byte)) & 0xff]
                    }
                    place += 8
                }
                for byte in bytes[place...] { sum = tables[Int((sum ^ UInt32(byte)) & 0xff)] ^ sum >> 8 }
            }
        }
        return sum
    }

    /// Returns the checksum as eight hexadecimal digits in ASCII.
    package static func digits(_ bytes: [UInt8]) -> [UInt8] { digits(of(bytes)) }

    private static func digits(_ sum: UInt32) -> [UInt8] {
        withUnsafeBytes(of: sum.bigEndian) { Hex.digits($0) }
    }

    /// The effect of each byte on the sum, in 256 entries; then the same for bytes that are followed by one to seven
    /// others.
    private static let tables: [UInt32] = {
        var tables: [UInt32] = (0..<256).map { byte in
            (0..<8).reduce(UInt32(byte)) { sum, _ in sum & 1 == 1 ? 0xedb8_8320 ^ sum >> 1 : sum >> 1 }
        }
        for place in 0..<7 * 256 {
            let sum: UInt32 = tables[place]
            let next: UInt32 = tables[Int(sum & 0xff)] ^ (sum >> 8)
            tables.append(next)
        }
        return tables
    }()
}
