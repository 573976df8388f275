import MartletStore

/// A transaction of another node, and what can be worked out of it without the store: on any thread, before it is applied.
final class DecodedTransaction: Sendable {
    /// Of how many changes all are worked out ahead. Of more, each when its turn comes: together they take as much memory as what
    /// they were made from.
    private static let maxAhead = 1000

    let wire: WireTransaction
    /// Nil where its bytes are no UUID.
    let origin: NodeID?
    let sequence: Int64
    /// Which node the stamps of the changes are of.
    let clockedBy: NodeID
    /// The stamp's time of its last change. Nil where no clock comes to it.
    let latest: HybridTime?
    /// What the history says of where it came from.
    let seal: SealOrigin
    private let ahead: [DecodedChange]

    /// - Parameter isAhead: whether its changes are worked out now.
    init(_ wire: WireTransaction, isAhead: Bool = false) {
        self.wire = wire
        origin = NodeID(bytes: wire.origin)
        sequence = Int64(clamping: wire.sequence)
        clockedBy = wire.clockedBy
        var reading: UInt64? = wire.hlc
        var ahead: [DecodedChange] = []
        let keepsAll = isAhead && wire.changes.count <= Self.maxAhead
        for change in wire.changes {
            reading = reading.flatMap { reading in
                let (sum, overflow) = reading.addingReportingOverflow(change.clockStep)
                return overflow ? nil : sum
            }
            if keepsAll { ahead.append(DecodedChange(change, after: ahead.last)) }
        }
        self.ahead = ahead
        latest = reading.flatMap(WireBounds.time)
        seal = SealOrigin(
            node: Array(wire.origin), sequence: sequence, author: wire.hasAuthor ? wire.author : nil,
            timestamp: wire.timestampMs, name: wire.originName)
    }

    /// The change at this place of `wire.changes`.
    func change(_ index: Int) -> DecodedChange {
        index < ahead.count ? ahead[index] : DecodedChange(wire.changes[index])
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
    let row: Result<Row, WireError>
    /// Their slots are known to the store alone, and are 0 here.
    let columns: Result<[RemoteColumn], WireError>

    /// Which row it is about, and what becomes of it.
    struct Row: Sendable {
        var kind: ChangeKind
        var identity: StableID
        /// What the identity was made of.
        var identityValues: [Value]
    }

    /// - Parameter previous: another change of the transaction, which mostly has the same columns.
    init(_ wire: WireChange, after previous: DecodedChange? = nil) {
        self.wire = wire
        entity = wire.entity
        clockStep = wire.clockStep
        let names = wire.columns.map(\.allNames)
        self.names = previous.flatMap { $0.names == names ? $0.names : nil } ?? names
        row = Result { () throws(WireError) in try Row(wire) }
        columns = Result { () throws(WireError) in
            try wire.columns.map { column throws(WireError) in
                RemoteColumn(
                    slot: 0, value: try column.value.value(), replaces: HybridTime(rawValue: column.replaces))
            }
        }
    }
}

extension DecodedChange.Row {
    /// - Throws: ``WireError`` for nonsense.
    init(_ wire: WireChange) throws(WireError) {
        kind = try wire.changeKind()
        guard wire.hasIdentity else { throw .noIdentity(wire.entity) }
        identityValues = try wire.identity.map { value throws(WireError) in try value.value() }
        identity = StableID(values: identityValues)
    }
}
