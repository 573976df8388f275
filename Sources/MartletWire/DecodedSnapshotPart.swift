import Crypto
package import MartletCore

/// A part of a snapshot, with everything that can be computed from it without the store. That can happen on any thread,
/// before the part is applied.
package struct DecodedSnapshotPart: Sendable {
    package let kind: WireSnapshotPart.OneOf_Kind
    /// The plain form of each row of the contents. Nil for a row that has none.
    package let plainRows: [PlainSnapshotRow?]
    /// The SHA-256 of the part's bytes.
    package let hash: [UInt8]

    /// - Throws: ``/MartletCore/StoreError`` with code `.newerVersion` or `.corrupt`.
    package init(_ bytes: [UInt8]) throws(StoreError) {
        kind = try SnapshotFormat.decode(bytes)
        hash = Array(SHA256.hash(data: bytes))
        if case .contents(let contents) = kind {
            plainRows = contents.rows.map { PlainSnapshotRow($0) }
        } else {
            plainRows = []
        }
    }
}

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

    /// Returns nil for a row that is not plain, or not valid. What is wrong with it is found where it is merged.
    package init?(_ row: WireSnapshotRow) {
        guard row.hasInserted, !row.hasDeleted, row.exceptions.isEmpty, row.columns.isEmpty,
            row.identity.makesIdentity, let identityValues = try? Self.values(row.identity),
            let values = try? Self.values(row.values)
        else { return nil }
        entity = Int(row.entity)
        identity = StableID(values: identityValues)
        self.identityValues = identityValues
        self.values = values
        time = HybridTime(rawValue: row.inserted.hlc)
        node = Int(row.inserted.node)
        localID = row.hasLocalID ? row.localID : nil
    }

    private static func values(_ wire: [WireValue]) throws(WireError) -> [Value] {
        var values: [Value] = []
        values.reserveCapacity(wire.count)
        for value in wire { values.append(try value.value()) }
        return values
    }
}
