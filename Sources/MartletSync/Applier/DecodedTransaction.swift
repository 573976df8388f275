import MartletStore

/// A transaction of another node, and all that can be worked out of it without the store: on any thread, ahead of being
/// applied.
final class DecodedTransaction: Sendable {
    let wire: WireTransaction
    /// Nil where its bytes are no UUID.
    let origin: NodeID?
    let sequence: Int64
    /// Which node the stamps of the changes are of.
    let clockedBy: NodeID
    /// The stamp's time of its last change. Nil where there is no such time.
    let latest: HybridTime?
    let changes: [DecodedChange]
    /// What the history says of where it came from.
    let seal: SealOrigin

    init(_ wire: WireTransaction) {
        self.wire = wire
        origin = NodeID(bytes: wire.origin)
        sequence = Int64(clamping: wire.sequence)
        clockedBy = wire.clockedBy
        changes = wire.changes.map { DecodedChange($0) }
        latest = changes.reduce(wire.hlc as UInt64?) { reading, change in
            reading.flatMap {
                let (sum, overflow) = $0.addingReportingOverflow(change.clockStep)
                return overflow ? nil : sum
            }
        }.map { HybridTime(rawValue: $0) }
        seal = SealOrigin(
            node: Array(wire.origin), sequence: sequence, author: wire.hasAuthor ? wire.author : nil,
            timestamp: wire.timestampMs, name: wire.originName)
    }
}

/// A change of another node, and what can be worked out of it without the store.
///
/// Applying reads this, and what is on the wire only where a change meets something special: to copy that costs more than
/// all that is done with it.
final class DecodedChange: Sendable {
    let wire: WireChange
    let entity: String
    let clockStep: UInt64
    /// Of its columns: each one's name, and those that it had before; see ``WireColumn/allNames``.
    let names: [String]
    /// What it says in the terms of the store.
    let contents: Result<Contents, WireError>

    struct Contents: Sendable {
        var kind: ChangeKind
        var identity: StableID
        /// What the identity was made of.
        var identityValues: [Value]
        /// Those of the columns. Their slots are known to the store alone, and are 0 here.
        var columns: [RemoteColumn]
    }

    init(_ wire: WireChange) {
        self.wire = wire
        entity = wire.entity
        clockStep = wire.clockStep
        names = wire.columns.map(\.allNames)
        contents = Result { () throws(WireError) in try Contents(wire) }
    }
}

extension DecodedChange.Contents {
    /// - Throws: ``WireError`` for nonsense.
    init(_ wire: WireChange) throws(WireError) {
        kind = try wire.changeKind()
        guard !wire.identity.isEmpty else { throw WireError("A change of \(wire.entity) has no identity.") }
        identityValues = try wire.identity.map { value throws(WireError) in try value.value() }
        identity = StableID(values: identityValues)
        columns = try wire.columns.map { column throws(WireError) in
            RemoteColumn(
                slot: 0, value: try column.value.value(), replaces: HybridTime(rawValue: column.replaces))
        }
    }
}
