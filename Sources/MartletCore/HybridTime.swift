/// A reading of a hybrid logical clock: 48 bits of milliseconds since 1970, then a counter of 16 bits.
///
/// It stays close to wall-clock time, and yet what happened after something else, on whatever node, reads higher.
/// Source: Kulkarni, Demirbas and others, "Logical Physical Clocks", OPODIS 2014.
public struct HybridTime: Hashable, Comparable, Sendable, RawRepresentable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The first reading of this millisecond. Times before 1970 or after the year 10889 are moved into the range.
    public init(milliseconds: Int64) {
        rawValue = UInt64(min(max(0, milliseconds), 1 << 47 - 1)) << 16
    }

    /// Before every reading.
    public static let zero = HybridTime(rawValue: 0)

    public var milliseconds: Int64 { Int64(rawValue >> 16) }

    /// The next reading: a full counter flows over into the milliseconds.
    public var next: HybridTime { HybridTime(rawValue: rawValue &+ 1) }

    public static func < (a: HybridTime, b: HybridTime) -> Bool { a.rawValue < b.rawValue }
}

/// The hybrid logical clock of a node. Pure: the caller brings wall-clock time and keeps the state.
public struct HybridClock: Sendable, Equatable {
    /// The highest reading so far.
    public private(set) var last: HybridTime

    public init(last: HybridTime = .zero) { self.last = last }

    /// The reading for a local change that was made at this wall-clock time: later than every reading before it, and no
    /// later than it must be, so that what is clocked late wins no conflict by being late.
    public mutating func tick(at milliseconds: Int64) -> HybridTime {
        last = max(last.next, HybridTime(milliseconds: milliseconds))
        return last
    }

    /// Takes note of an accepted reading of another node.
    public mutating func observe(_ other: HybridTime) {
        last = max(last, other)
    }
}
