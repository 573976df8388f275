import Crypto
package import MartletCore
import MartletStore

/// The rows for which the hash of the stable ID begins with the same digits. Ranges have even sizes, whatever the keys
/// are.
package struct KeyRange: Hashable {
    /// The number of hexadecimal digits. 0: all rows.
    package let level: Int
    /// The digits, in the upper bits.
    package let prefix: UInt32

    /// Ranges with at most this many rows are sent row by row, instead of being divided further.
    package static let leafRows = 64
    package static let maxLevel = 8
    package static let all = KeyRange(level: 0, prefix: 0)

    private init(level: Int, prefix: UInt32) {
        self.level = level
        self.prefix = prefix
    }

    /// Nil if the values are not a valid range.
    package init?(level: UInt32, prefix: UInt32) {
        guard level <= Self.maxLevel else { return nil }
        self.init(level: Int(level), prefix: prefix)
        guard prefix & ~Self.mask(Int(level)) == 0 else { return nil }
    }

    /// Makes the range of this level that contains the position.
    package init(_ position: UInt32, level: Int) {
        self.init(level: level, prefix: position & Self.mask(level))
    }

    private static func mask(_ level: Int) -> UInt32 { level == 0 ? 0 : ~0 << UInt32(32 - 4 * level) }

    /// Returns a row's position among all rows: the first 32 bits of a SHA-256 of its ID.
    package static func position(_ identity: StableID) -> UInt32 {
        SHA256.hash(data: identity.bytes).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The sixteen parts of the range. Empty if it can't be divided.
    package var parts: [KeyRange] {
        guard level < Self.maxLevel else { return [] }
        return (0..<16).map { KeyRange(level: level + 1, prefix: prefix | $0 << UInt32(28 - 4 * level)) }
    }

    package var parent: KeyRange? { level == 0 ? nil : KeyRange(prefix, level: level - 1) }

    /// Returns the level at which a range has few of this many rows, but not one so deep that there would be many
    /// ranges.
    package static func level(forRows rows: Int) -> Int { [0, 1, 2].first { rows >> (4 * $0) <= leafRows } ?? 3 }

    /// Returns all ranges of this level.
    package static func every(level: Int) -> [KeyRange] {
        level == 0 ? [.all] : every(level: level - 1).flatMap(\.parts)
    }
}

/// The digest of a range's rows.
package struct RangeSum: Hashable {
    package var rows = 0
    package var sum = DigestSum()

    package init(rows: Int = 0, sum: DigestSum = DigestSum()) {
        self.rows = rows
        self.sum = sum
    }

    package mutating func add(_ hash: DigestSum) {
        rows += 1
        sum += hash
    }

    package static func += (sum: inout RangeSum, other: RangeSum) {
        sum.rows += other.rows
        sum.sum += other.sum
    }
}
