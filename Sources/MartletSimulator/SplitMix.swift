/// A seeded random number generator with the same numbers on every machine.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }

    /// A number from 0 up to, but not including, the limit.
    package mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(max(1, limit))) }

    /// Returns true in one of `of` cases.
    package mutating func once(in of: Int) -> Bool { below(of) == 0 }

    package mutating func pick<T>(_ values: [T]) -> T { values[below(values.count)] }

    /// Picks at most this many of the values, in their order.
    mutating func some<T>(_ values: [T], _ most: Int) -> [T] {
        var left = values
        while left.count > most { left.remove(at: below(left.count)) }
        return left
    }

    package mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}
