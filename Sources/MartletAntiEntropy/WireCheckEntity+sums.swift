import Foundation
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

extension WireCheckEntity {
    init(_ entity: Entity, _ sums: [(range: KeyRange, sum: RangeSum)]) {
        self.init()
        name = entity.name
        shape = Data(RecordShape(entity).digest)
        ranges = sums.map { range, sum in
            var wire = WireCheckRange()
            wire.level = UInt32(range.level)
            wire.prefix = range.prefix
            wire.rows = UInt64(sum.rows)
            if sum.rows > 0 { wire.digest = Data(sum.sum.bytes) }
            return wire
        }
    }

    /// The valid ranges, each with the digest of its rows.
    var sums: [(range: KeyRange, sum: RangeSum)] {
        ranges.compactMap { wire in
            guard let range = KeyRange(level: wire.level, prefix: wire.prefix),
                InputBounds.rows.contains(wire.rows), wire.digest.count == (wire.rows == 0 ? 0 : 16)
            else { return nil }
            return (range, RangeSum(rows: Int(wire.rows), sum: DigestSum(bytes: wire.digest)))
        }
    }
}
