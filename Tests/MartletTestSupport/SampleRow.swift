import Foundation
package import MartletSync

/// Three nodes, in the order of their IDs.
package let sampleNodes = (1...3).map { number in
    NodeID(UUID(uuid: (UInt8(number), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
}

/// A stamp of one of the ``sampleNodes``. The time 0 gives the lowest stamp, which is of no node.
package func sampleStamp(_ time: UInt64, _ node: Int = 0) -> Stamp {
    time == 0 ? .zero : Stamp(time: HybridTime(rawValue: time), node: sampleNodes[node])
}

/// What a node knows of a row with one column, in slot 1, by the times of the first sample node.
package func sampleRow(
    _ inserted: UInt64?, deleted: UInt64? = nil, _ values: [Int: Value] = [1: .integer(1)]
) -> RowRecord {
    RowRecord(
        identity: StableID(values: [.integer(1)]),
        clocks: RowClocks(inserted: inserted.map { sampleStamp($0) }, deleted: deleted.map { sampleStamp($0) }),
        values: values)
}
