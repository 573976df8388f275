import Foundation

/// UUIDs that are determined by a number.
enum UUIDs {
    static func make(_ seed: UInt64, _ number: UInt64) -> UUID {
        var random = SplitMix(seed: seed &* 31 &+ number &+ 0x51)
        return make(random.bytes(16))
    }

    static func make(_ b: [UInt8]) -> UUID {
        UUID(
            uuid: (b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15])
        )
    }
}
