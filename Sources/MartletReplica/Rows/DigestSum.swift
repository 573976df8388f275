import MartletCore

/// A sum of row hashes modulo 2^128: the same for the same rows in any order.
package struct DigestSum: Hashable, CustomStringConvertible {
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    package init() {}

    /// - Parameter bytes: at most 16 of them.
    package init(bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    package static func += (sum: inout DigestSum, other: DigestSum) {
        let (low, overflow) = sum.low.addingReportingOverflow(other.low)
        sum.low = low
        sum.high = sum.high &+ other.high &+ (overflow ? 1 : 0)
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian) { Array($0) } + withUnsafeBytes(of: low.bigEndian) { Array($0) }
    }

    package var description: String { Hex.text(bytes) }
}
