import Crypto
import MartletStore

/// Rows whose stable ID has a hash that begins with the same digits: ranges are even, whatever the keys are.
struct KeyRange: Hashable {
    /// How many hexadecimal digits. 0: all rows.
    let level: Int
    /// The digits, in the upper bits.
    let prefix: UInt32

    /// So many rows are told one by one, instead of being divided further.
    static let leafRows = 64
    static let maxLevel = 8
    static let all = KeyRange(level: 0, prefix: 0)

    private init(level: Int, prefix: UInt32) {
        self.level = level
        self.prefix = prefix
    }

    /// Nil for what is no range.
    init?(level: UInt32, prefix: UInt32) {
        guard level <= Self.maxLevel else { return nil }
        self.init(level: Int(level), prefix: prefix)
        guard prefix & ~Self.mask(Int(level)) == 0 else { return nil }
    }

    /// The range of this level in which the position is.
    init(_ position: UInt32, level: Int) {
        self.init(level: level, prefix: position & Self.mask(level))
    }

    private static func mask(_ level: Int) -> UInt32 { level == 0 ? 0 : ~0 << UInt32(32 - 4 * level) }

    /// Where a row is among all: the first 32 bits of a SHA-256 of its ID.
    static func position(_ identity: StableID) -> UInt32 {
        SHA256.hash(data: identity.bytes).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The sixteen parts of the range. None where it can't be divided.
    var parts: [KeyRange] {
        guard level < Self.maxLevel else { return [] }
        return (0..<16).map { KeyRange(level: level + 1, prefix: prefix | $0 << UInt32(28 - 4 * level)) }
    }

    var parent: KeyRange? { level == 0 ? nil : KeyRange(prefix, level: level - 1) }

    /// The level of which a range has few of so many rows. Not so deep that the ranges themselves would be many.
    static func level(forRows rows: Int) -> Int { [0, 1, 2].first { rows >> (4 * $0) <= leafRows } ?? 3 }

    /// All ranges of this level.
    static func every(level: Int) -> [KeyRange] {
        level == 0 ? [.all] : every(level: level - 1).flatMap(\.parts)
    }
}

/// What the rows of a range come to.
struct RangeSum: Hashable {
    var rows = 0
    var sum = DigestSum()

    mutating func add(_ hash: DigestSum) {
        rows += 1
        sum += hash
    }

    static func += (sum: inout RangeSum, other: RangeSum) {
        sum.rows += other.rows
        sum.sum += other.sum
    }
}
