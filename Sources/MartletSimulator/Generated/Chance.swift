/// Draws that names decide, so that what is left out of a schema changes nothing of what is drawn for the rest of it.
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

    /// The value whose name draws the highest number: the same for as long as it is there.
    func pick<T>(_ values: [T], _ name: (T) -> String) -> T? {
        values.map { value in
            var random = random(name(value))
            return (value, random.next())
        }.max { $0.1 < $1.1 }?.0
    }
}
