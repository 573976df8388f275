package import MartletCore
import SwiftProtobuf

/// A remote transaction, with everything that can be computed from it without the store. That can happen on any thread,
/// before the transaction is applied.
package final class DecodedTransaction: Sendable {
    /// The most changes that are all decoded ahead. In larger transactions each change is decoded when its turn comes,
    /// since decoded changes take as much memory again as their source.
    private static let maxAhead = 1000

    /// The transaction without its changes.
    package let header: WireTransaction
    /// Nil if its bytes are not a UUID.
    package let origin: NodeID?
    package let sequence: Int64
    /// The node of the changes' stamps.
    package let clockedBy: NodeID
    /// The time of the last change's stamp. Nil if no clock can reach it.
    package let latest: HybridTime?
    /// The origin of the transaction, as recorded in the history.
    package let source: TransactionOrigin
    /// False if all changes can be understood, whatever tables and columns this node has.
    package let mayHaveFault: Bool
    private let changes: Changes

    private enum Changes {
        case decoded([WireChange], ahead: [DecodedChange])
        case encoded(EncodedChanges)
    }

    /// - Parameter isAhead: whether to decode its changes now.
    /// - Throws: ``WireError`` if the bytes are not a transaction, or have a version that this program doesn't know.
    package convenience init(payload: [UInt8], isAhead: Bool = false) throws(WireError) {
        if payload.count < EncodedChanges.minBytes {
            self.init(try WireFormat.decode(payload), isAhead: isAhead)
        } else {
            let (header, changes) = try EncodedChanges.read(payload)
            self.init(header, .encoded(changes), lastStep: changes.lastStep, mayHaveFault: changes.hasFault)
        }
    }

    /// Reads a payload that is not in memory, change by change, whatever its size.
    ///
    /// - Parameter maxChangeBytes: the limit for a change that is in several pieces of the payload.
    /// - Throws: the same, or the error of whatever keeps the payload.
    package convenience init(_ payload: any StoredPayload, maxChangeBytes: Int) throws {
        let (header, changes) = try EncodedChanges.read(.stored(payload), maxChangeBytes: maxChangeBytes)
        self.init(header, .encoded(changes), lastStep: changes.lastStep, mayHaveFault: changes.hasFault)
    }

    /// Reads a payload, wherever it is.
    ///
    /// - Parameter maxChangeBytes: the limit for a change that is in several pieces of the payload. The default is for
    ///   payloads that were accepted before.
    package convenience init(
        _ payload: TransactionPayload, maxChangeBytes: Int = EncodedChanges.anyChangeBytes
    ) throws {
        switch payload {
        case .whole(let bytes): try self.init(payload: bytes)
        case .stored(let stored): try self.init(stored, maxChangeBytes: maxChangeBytes)
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
        source = TransactionOrigin(
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

    /// Returns the table of the first change if no change has a row identity. Returns nil otherwise.
    package func entityWithoutIdentity() throws -> String? {
        var first: String?
        var hasNamed = false
        try forEachChange { change in
            first = first ?? change.entity
            if change.wire.hasIdentity { hasNamed = true }
        }
        return hasNamed ? nil : first
    }

    /// Checks that no change exceeds the size limit of this node.
    ///
    /// - Throws: ``WireError`` if a change has more bytes than `limit`.
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

/// A remote change, with everything that can be computed from it without the store.
///
/// Applying a change uses these fields, and reads the wire message only in special cases: copying that message costs
/// more than everything else that is done with it.
package final class DecodedChange: Sendable {
    package let wire: WireChange
    package let entity: String
    package let clockStep: UInt64
    /// The name of each column together with its former names; see ``WireColumn/allNames``.
    package let names: [String]
    package let row: Result<Row, WireError>
    /// The column values. Slots are known only to the store, and are 0 here.
    package let columns: Result<[RemoteColumn], WireError>

    /// The row that the change concerns, and the kind of change.
    package struct Row: Sendable {
        package var kind: ChangeKind
        package var identity: StableID
        /// The values that the identity was made of.
        package var identityValues: [Value]
    }

    /// - Parameter previous: an earlier change of the transaction, which usually has the same columns.
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
    /// True if the change has a row identity, but also a value or a kind that this program doesn't know.
    package var isFaulty: Bool {
        guard wire.hasIdentity else { return false }
        if case .failure = row { return true }
        if case .failure = columns { return true }
        return false
    }
}

extension DecodedChange.Row {
    /// - Throws: ``WireError`` if the kind is unknown, the row identity is missing, or a value is invalid.
    package init(_ wire: WireChange) throws(WireError) {
        kind = try wire.changeKind()
        guard wire.hasIdentity else { throw .noIdentity(wire.entity) }
        identityValues = try wire.identity.map { value throws(WireError) in try value.value() }
        identity = StableID(values: identityValues)
    }
}

/// A column of a remote change.
package struct RemoteColumn {
    package var slot: Int
    package var value: Value
    /// The time of the value that the author saw before the change.
    package var replaces: HybridTime

    package init(slot: Int, value: Value, replaces: HybridTime) {
        self.slot = slot
        self.value = value
        self.replaces = replaces
    }
}

extension WireColumn {
    /// The column's name and its former names, separated by NUL characters.
    package var allNames: String {
        formerNames.isEmpty ? name : ([name] + formerNames).joined(separator: "\0")
    }
}
