/// Draws random values by name, so that leaving out one part of a schema doesn't change the draws for the rest.
struct Chance {
    private let seed: UInt64

    init(_ seed: UInt64) { self.seed = seed }

    func random(_ name: String) -> SplitMix {
        // FNV-1a.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return SplitMix(seed: seed ^ hash)
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
