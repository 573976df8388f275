package import MartletCore

/// A remote change, with everything that can be computed from it without the store.
///
/// Applying a change uses these fields, and reads the wire message only in special cases: that message costs more than
/// everything else that is done with it, and a plain change is decoded without one.
package final class DecodedChange: Sendable {
    package let entity: String
    package let formerEntities: [String]
    package let clockStep: UInt64
    /// For a delete: the newest value that its author had seen.
    package let replaces: HybridTime
    /// The integer key of the row at the author.
    package let localID: Int64?
    /// See ``WireChange/hasIdentity``.
    package let hasIdentity: Bool
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

    private enum Source {
        case message(WireChange)
        /// The range in an encoded transaction.
        case encoded([UInt8], Range<Int>)
    }
    private let source: Source

    /// Decodes a change.
    ///
    /// - Parameters:
    ///   - range: where the change is in an encoded transaction.
    ///   - names: the names in changes that were decoded before.
    /// - Throws: ``WireError`` if the bytes are not a change.
    package convenience init(
        _ bytes: [UInt8], _ range: Range<Int>, as encoding: WireEncoding, _ names: inout KnownNames
    ) throws(WireError) {
        // Below this size, it has no more fields than the limit for decoding as a whole.
        if encoding == .protobuf, range.count < EncodedChanges.minBytes,
            let plain = bytes.withUnsafeBytes({ all in
                PlainChange(encoded: UnsafeRawBufferPointer(rebasing: all[range]), &names)
            })
        {
            self.init(plain, .encoded(bytes, range))
        } else {
            self.init(try WireFormat.decodeChange(Array(bytes[range]), as: encoding), &names)
        }
    }

    private init(_ plain: PlainChange, _ source: Source) {
        self.source = source
        entity = plain.entity
        formerEntities = []
        clockStep = plain.clockStep
        replaces = HybridTime(rawValue: plain.replaces)
        localID = plain.localID
        hasIdentity = true
        names = plain.names
        row = .success(
            Row(
                kind: plain.kind, identity: StableID(values: plain.identityValues),
                identityValues: plain.identityValues))
        columns = .success(plain.columns)
    }

    package convenience init(_ wire: WireChange) {
        var names = KnownNames()
        self.init(wire, &names)
    }

    init(_ wire: WireChange, _ names: inout KnownNames) {
        source = .message(wire)
        entity = wire.entity
        formerEntities = wire.formerEntities
        clockStep = wire.clockStep
        replaces = HybridTime(rawValue: wire.replaces)
        localID = wire.hasLocalID ? wire.localID : nil
        hasIdentity = wire.hasIdentity
        self.names = names.shared(wire.columns.map(\.allNames), of: wire.kind)
        row = Result { () throws(WireError) in try Row(wire) }
        columns = Result { () throws(WireError) in
            try wire.columns.map { column throws(WireError) in
                RemoteColumn(
                    slot: 0, value: try column.value.value(), replaces: HybridTime(rawValue: column.replaces))
            }
        }
    }

    /// Returns the change as a message.
    ///
    /// - Throws: ``WireError`` if the bytes are not a change.
    package func message() throws(WireError) -> WireChange {
        switch source {
        case .message(let wire): return wire
        case .encoded(let bytes, let range): return try WireFormat.decodeChange(Array(bytes[range]), as: .protobuf)
        }
    }

    /// Returns the number of bytes that it takes in Protobuf.
    package func byteCount() -> Int {
        switch source {
        case .message(let wire): WireFormat.encode(wire).count
        case .encoded(_, let range): range.count
        }
    }
}

extension DecodedChange {
    /// True if the change has a row identity, but also a value or a kind that this program doesn't know.
    package var isFaulty: Bool {
        guard hasIdentity else { return false }
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
