package import MartletCore
import SwiftProtobuf

/// A transaction of another node, and what can be worked out of it without the store: on any thread, before it is
/// applied.
package final class DecodedTransaction: Sendable {
    /// Of how many changes all are worked out ahead. Of more, each when its turn comes: together they take as much
    /// memory as what they were made from.
    private static let maxAhead = 1000

    /// Without its changes.
    package let header: WireTransaction
    /// Nil where its bytes are no UUID.
    package let origin: NodeID?
    package let sequence: Int64
    /// Which node the stamps of the changes are of.
    package let clockedBy: NodeID
    /// The stamp's time of its last change. Nil where no clock comes to it.
    package let latest: HybridTime?
    /// What the history says of where it came from.
    package let seal: SealOrigin
    /// False where all changes can be understood, in whatever tables and columns there are here.
    package let mayHaveFault: Bool
    private let changes: Changes

    private enum Changes {
        case decoded([WireChange], ahead: [DecodedChange])
        case encoded(EncodedChanges)
    }

    /// - Parameter isAhead: whether its changes are worked out now.
    /// - Throws: ``WireError`` for bytes that are no transaction, or one of a version that this program doesn't know.
    package convenience init(payload: [UInt8], isAhead: Bool = false) throws(WireError) {
        if payload.count < EncodedChanges.minBytes {
            self.init(try WireFormat.decode(payload), isAhead: isAhead)
        } else {
            let (header, changes) = try EncodedChanges.read(payload)
            self.init(header, .encoded(changes), lastStep: changes.lastStep, mayHaveFault: changes.hasFault)
        }
    }

    package convenience init(_ wire: WireTransaction, isAhead: Bool = false) {
        var ahead: [DecodedChange] = []
        let keepsAll = isAhead && wire.changes.count <= Self.maxAhead
        var lastStep: UInt64? = 0
        var mayHaveFault = !isAhead
        for change in wire.changes {
            lastStep = InputBounds.sum(lastStep, change.clockStep)
            guard isAhead else { continue }
            let decoded = DecodedChange(change, after: ahead.last)
            mayHaveFault = mayHaveFault || decoded.isFaulty
            if keepsAll { ahead.append(decoded) }
        }
        var header = wire
        header.changes = []
        self.init(header, .decoded(wire.changes, ahead: ahead), lastStep: lastStep, mayHaveFault: mayHaveFault)
    }

    private init(_ header: WireTransaction, _ changes: Changes, lastStep: UInt64?, mayHaveFault: Bool) {
        self.header = header
        self.mayHaveFault = mayHaveFault
        self.changes = changes
        origin = NodeID(bytes: header.origin)
        sequence = Int64(clamping: header.sequence)
        clockedBy = header.clockedBy
        latest = InputBounds.sum(lastStep, header.hlc).flatMap(InputBounds.time)
        seal = SealOrigin(
            node: Array(header.origin), sequence: sequence, author: header.hasAuthor ? header.author : nil,
            timestamp: header.timestampMs, name: header.originName)
    }

    /// Calls `body` with each change, in order.
    package func forEachChange(_ body: (DecodedChange) throws -> Void) throws {
        switch changes {
        case .decoded(let all, let ahead):
            for index in all.indices { try body(index < ahead.count ? ahead[index] : DecodedChange(all[index])) }
        case .encoded(let changes): try changes.forEach(body)
        }
    }

    /// The table of the first change, where none of them names a row.
    package func namelessEntity() throws -> String? {
        var first: String?
        var hasNamed = false
        try forEachChange { change in
            first = first ?? change.entity
            if change.wire.hasIdentity { hasNamed = true }
        }
        return hasNamed ? nil : first
    }

    /// Refuses it where one change has more bytes than this node takes.
    ///
    /// - Throws: ``WireError``.
    package func checkSizes(_ limit: Int) throws {
        switch changes {
        case .decoded(let all, _):
            for change in all { try check(change.entity, (change.serializedBytes() as [UInt8]).count, limit) }
        case .encoded(let changes): try check(changes.largest.entity, changes.largest.bytes, limit)
        }
    }

    private func check(_ entity: String, _ bytes: Int, _ limit: Int) throws(WireError) {
        guard bytes > limit else { return }
        throw WireError(
            "A change of \(entity) has \(bytes) bytes; the limit is \(limit) (security.limits.maxRowBytes).")
    }
}

/// A change of another node, and what can be worked out of it without the store.
///
/// Applying reads this, and what is on the wire only where a change meets something special: to copy that costs more
/// than all that is done with it.
package final class DecodedChange: Sendable {
    package let wire: WireChange
    package let entity: String
    package let clockStep: UInt64
    /// Of its columns: each one's name, and those that it had before; see ``WireColumn/allNames``.
    package let names: [String]
    package let row: Result<Row, WireError>
    /// Their slots are known to the store alone, and are 0 here.
    package let columns: Result<[RemoteColumn], WireError>

    /// Which row it is about, and what becomes of it.
    package struct Row: Sendable {
        package var kind: ChangeKind
        package var identity: StableID
        /// What the identity was made of.
        package var identityValues: [Value]
    }

    /// - Parameter previous: another change of the transaction, which mostly has the same columns.
    package init(_ wire: WireChange, after previous: DecodedChange? = nil) {
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

extension DecodedChange {
    /// True for one that names a row, and has a value, or is of a kind, that this program doesn't know.
    package var isFaulty: Bool {
        guard wire.hasIdentity else { return false }
        if case .failure = row { return true }
        if case .failure = columns { return true }
        return false
    }
}

extension DecodedChange.Row {
    /// - Throws: ``WireError`` for nonsense.
    package init(_ wire: WireChange) throws(WireError) {
        kind = try wire.changeKind()
        guard wire.hasIdentity else { throw .noIdentity(wire.entity) }
        identityValues = try wire.identity.map { value throws(WireError) in try value.value() }
        identity = StableID(values: identityValues)
    }
}

/// A column of a change of another node.
package struct RemoteColumn {
    package var slot: Int
    package var value: Value
    /// The value that its author saw before.
    package var replaces: HybridTime

    package init(slot: Int, value: Value, replaces: HybridTime) {
        self.slot = slot
        self.value = value
        self.replaces = replaces
    }
}

extension WireColumn {
    /// The name, and those that it had before.
    package var allNames: String {
        formerNames.isEmpty ? name : ([name] + formerNames).joined(separator: "\0")
    }
}
