/// A hybrid logical clock (HLC) timestamp: 48 bits of milliseconds since 1970, then a 16-bit counter.
///
/// It stays close to wall-clock time, and an event that happened after another one, on any node, has a greater
/// timestamp. Source: Kulkarni, Demirbas and others, "Logical Physical Clocks", OPODIS 2014.
public struct HybridTime: Hashable, Comparable, Sendable, RawRepresentable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Creates the first timestamp of a millisecond. Clamps times before 1970 or after the year 6429 to the range.
    public init(milliseconds: Int64) {
        rawValue = UInt64(min(max(0, milliseconds), 1 << 47 - 1)) << 16
    }

    /// The timestamp before all others.
    public static let zero = HybridTime(rawValue: 0)

    public var milliseconds: Int64 { Int64(rawValue >> 16) }

    /// The same 64 bits as a store keeps them: SQLite has no unsigned integers.
    package var stored: Int64 { Int64(bitPattern: rawValue) }

    package init(stored: Int64) { self.init(rawValue: UInt64(bitPattern: stored)) }

    /// The next timestamp. A full counter carries over into the milliseconds.
    public var next: HybridTime { HybridTime(rawValue: rawValue &+ 1) }

    public static func < (a: HybridTime, b: HybridTime) -> Bool { a.rawValue < b.rawValue }
}

/// The hybrid logical clock of a node. A pure value: the caller supplies the wall-clock time and stores the state.
public struct HybridClock: Sendable, Equatable {
    /// The highest timestamp so far.
    public private(set) var last: HybridTime

    public init(last: HybridTime = .zero) { self.last = last }

    /// Returns the timestamp of a local change that was made at a wall-clock time.
    ///
    /// It is later than every earlier timestamp, but no later than it has to be: a change that is stamped late must not
    /// win a conflict because of that.
    public mutating func tick(at milliseconds: Int64) -> HybridTime {
        last = max(last.next, HybridTime(milliseconds: milliseconds))
        return last
    }

    /// Advances the clock to a timestamp that was accepted from another node.
    public mutating func observe(_ other: HybridTime) {
        last = max(last, other)
    }
}
