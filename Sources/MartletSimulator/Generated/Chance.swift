import MartletStore

/// Draws random values by name, so that leaving out one part of a schema doesn't change the draws for the rest.
package struct Chance {
    private let seed: UInt64

    package init(_ seed: UInt64) { self.seed = seed }

    func random(_ name: String) -> SplitMix {
        SplitMix(seed: seed ^ FNV1a(name.utf8).value)
    }

    func below(_ limit: Int, _ name: String) -> Int {
        var random = random(name)
        return random.below(limit)
    }

    func once(in of: Int, _ name: String) -> Bool { below(of, name) == 0 }

    /// Picks the value whose name draws the highest number: always the same one as long as it is present.
    func pick<T>(_ values: [T], _ name: (T) -> String) -> T? {
        values.map { value in
            var random = random(name(value))
            return (value, random.next())
        }.max { $0.1 < $1.1 }?.0
    }
}
