package import MartletCore

/// A transaction as it is on the topic, decoded but otherwise unchanged. For tools that inspect the topic from outside.
package struct PublishedTransaction: Sendable, Equatable {
    package struct Change: Sendable, Equatable {
        package var kind: ChangeKind
        package var entity: String
        package var identity: StableID
        package var stamp: Stamp
        package var columns: [Column]
        /// For a delete: when the newest value of the row was set that the author had seen.
        package var replaces: HybridTime

        package init(
            _ kind: ChangeKind, _ entity: String, _ identity: StableID, at stamp: Stamp, _ columns: [Column] = [],
            replaces: HybridTime = HybridTime(rawValue: 0)
        ) {
            self.kind = kind
            self.entity = entity
            self.identity = identity
            self.stamp = stamp
            self.columns = columns
            self.replaces = replaces
        }
    }

    package struct Column: Sendable, Equatable {
        package var name: String
        package var value: Value
        /// When the value that the author replaced was set.
        package var replaces: HybridTime

        package init(_ name: String, _ value: Value, replaces: HybridTime = HybridTime(rawValue: 0)) {
            self.name = name
            self.value = value
            self.replaces = replaces
        }
    }

    package var origin: NodeID
    package var sequence: Int64
    /// The clock reading with which it begins.
    package var time = HybridTime(rawValue: 0)
    /// The sequences of earlier transactions of the same origin that it replaces.
    package var restates: [Int64] = []
    package var changes: [Change] = []

    package init(origin: NodeID, sequence: Int64, changes: [Change]) {
        self.origin = origin
        self.sequence = sequence
        self.changes = changes
    }

    /// - Throws: an error that says why the bytes are not a transaction.
    package init(decoding bytes: [UInt8]) throws {
        let wire = try WireFormat.decode(bytes)
        guard let origin = NodeID(bytes: wire.origin) else { throw WireError("The origin is not a UUID.") }
        self.origin = origin
        sequence = Int64(wire.sequence)
        time = HybridTime(rawValue: wire.hlc)
        restates = wire.restates.compactMap { Int64(exactly: $0) }
        var reading = wire.hlc
        for change in wire.changes {
            reading &+= change.clockStep
            changes.append(
                Change(
                    try change.changeKind(), change.entity, try StableID(wire: change.identity),
                    at: Stamp(time: HybridTime(rawValue: reading), node: wire.clockedBy),
                    try change.columns.map {
                        Column($0.name, try $0.value.value(), replaces: HybridTime(rawValue: $0.replaces))
                    }, replaces: HybridTime(rawValue: change.replaces)))
        }
    }
}

/// Header names for tools that read the topic from outside.
package enum PublishedHeader {
    package static let origin = WireHeader.origin
    package static let sequence = WireHeader.sequence
    package static let chunk = WireHeader.chunk
}
