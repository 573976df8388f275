/// The checksum of a payload: the CRC-32 of zlib, PNG and Ethernet.
enum CRC32 {
    static func of(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = .max
        table.withUnsafeBufferPointer { table in
            for byte in bytes { sum = table[Int((sum ^ UInt32(byte)) & 0xff)] ^ sum >> 8 }
        }
        return ~sum
    }

    /// Eight hexadecimal digits.
    static func text(_ bytes: [UInt8]) -> String {
        let digits = String(of(bytes), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { sum, _ in sum & 1 == 1 ? 0xedb8_8320 ^ sum >> 1 : sum >> 1 }
    }
}
