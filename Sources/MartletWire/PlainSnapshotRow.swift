package import MartletCore

/// A row of a snapshot that was inserted with all of its columns and never changed, as nearly all rows are.
package struct PlainSnapshotRow: Sendable {
    /// The table's place in the header.
    package let entity: Int
    package let identity: StableID
    /// The values that the identity was made of.
    package let identityValues: [Value]
    /// One value for each of the table's columns, in the header's order.
    package let values: [Value]
    /// When the row was inserted: the hybrid logical clock, and the node's place in the header. The lowest time for a
    /// row that existed before its table was attached.
    package let time: HybridTime
    package let node: Int
    package let localID: Int64?

    /// The tags of the fields of `SnapshotRow` that a plain row may have: number and type.
    private enum Tag {
        static let entity: UInt64 = 1 << 3
        static let identity: UInt64 = 2 << 3 | 2
        static let values: UInt64 = 3 << 3 | 2
        static let inserted: UInt64 = 5 << 3 | 2
        static let localID: UInt64 = 8 << 3
    }

    /// Reads an encoded `SnapshotRow`. To decode it as a message takes several times as long.
    ///
    /// - Parameter place: where the row is in the bytes.
    /// - Returns: nil for a row that is not plain, or not valid. What is wrong with it is found where its message is
    ///   decoded, and merged.
    init?(encoded bytes: UnsafeRawBufferPointer, _ place: Range<Int>) {
        var fields = EncodedFields(UnsafeRawBufferPointer(rebasing: bytes[place]))
        var entity: UInt64?
        var identityValues: [Value] = []
        var values: [Value] = []
        var inserted: (time: UInt64, node: UInt64)?
        var localID: Int64?
        while !fields.isAtEnd {
            guard let tag = fields.number() else { return nil }
            switch tag {
            case Tag.entity:
                guard entity == nil, let number = fields.number(), number <= UInt32.max else { return nil }
                entity = number
            case Tag.identity:
                guard let value = fields.value() else { return nil }
                identityValues.append(value)
            case Tag.values:
                guard let value = fields.value() else { return nil }
                values.append(value)
            case Tag.inserted:
                guard inserted == nil, let stamp = fields.stamp() else { return nil }
                inserted = stamp
            case Tag.localID:
                guard localID == nil, let number = fields.number() else { return nil }
                localID = Int64(zigzag: number)
            default: return nil
            }
        }
        // NULL, and NaN with it, is no part of an identity.
        guard let inserted, !identityValues.isEmpty, !identityValues.contains(where: \.isNull) else { return nil }
        self.entity = Int(entity ?? 0)
        identity = StableID(values: identityValues)
        self.identityValues = identityValues
        self.values = values
        time = HybridTime(rawValue: inserted.time)
        node = Int(inserted.node)
        self.localID = localID
    }
}
