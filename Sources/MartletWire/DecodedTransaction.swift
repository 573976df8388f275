package import MartletCore

/// A remote transaction, with everything that can be computed from it without the store. That can happen on any thread,
/// before the transaction is applied.
package final class DecodedTransaction: Sendable {
    /// The most changes that are decoded together. Of larger transactions, the changes are decoded again when their
    /// turn comes, since decoded changes take several times the memory of their source.
    private static let maxTogether = 1000

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
        case decoded([DecodedChange])
        case encoded(EncodedChanges)
    }

    /// - Throws: ``WireError`` if the bytes are not a transaction, or have a version that this program doesn't know.
    package convenience init(payload: [UInt8]) throws(WireError) {
        var names = KnownNames()
        try self.init(payload: payload, &names)
    }

    /// - Parameter names: the names in transactions that were decoded before.
    package convenience init(payload: [UInt8], _ names: inout KnownNames) throws(WireError) {
        let isLarge = payload.count >= EncodedChanges.minBytes
        let parts = isLarge || WireEncoding(of: payload) != .protobuf ? nil : Self.split(payload)
        if isLarge || parts?.changes.count ?? 0 > Self.maxTogether {
            self.init(try EncodedChanges.read(payload))
        } else if let parts {
            let header = try WireFormat.decode(parts.header)
            var changes: [DecodedChange] = []
            changes.reserveCapacity(parts.changes.count)
            for range in parts.changes { changes.append(try DecodedChange(payload, range, as: .protobuf, &names)) }
            self.init(header, changes)
        } else {
            self.init(try WireFormat.decode(payload))
        }
    }

    /// Separates the changes of an encoded transaction from the rest of it, without decoding either. Nil if the bytes
    /// have fields that only Protobuf can skip, or are not valid.
    private static func split(_ payload: [UInt8]) -> (header: [UInt8], changes: [Range<Int>])? {
        var fields = ProtobufFields(0..<payload.count)
        var header: [UInt8] = []
        var changes: [Range<Int>] = []
        // The end of the last change.
        var end = 0
        do throws(WireError) {
            while let field = try fields.next(in: payload) {
                guard field.number == ChangeReader.field else { continue }
                guard let content = field.content else { return nil }
                if end < field.whole.lowerBound { header += payload[end..<field.whole.lowerBound] }
                end = field.whole.upperBound
                changes.append(content)
            }
        } catch {
            return nil
        }
        if end < payload.count { header += payload[end...] }
        return (header, changes)
    }

    /// Reads a payload that is not in memory, change by change, whatever its size.
    ///
    /// - Parameter maxChangeBytes: the limit for a change that is in several pieces of the payload.
    /// - Throws: the same, or the error of whatever keeps the payload.
    package convenience init(_ payload: any StoredPayload, maxChangeBytes: Int) throws {
        self.init(try EncodedChanges.read(.stored(payload), maxChangeBytes: maxChangeBytes))
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

    package convenience init(_ wire: WireTransaction) {
        var changes: [DecodedChange] = []
        changes.reserveCapacity(wire.changes.count)
        var names = KnownNames()
        for change in wire.changes { changes.append(DecodedChange(change, &names)) }
        var header = wire
        header.changes = []
        self.init(header, changes)
    }

    private convenience init(_ header: WireTransaction, _ changes: [DecodedChange]) {
        var lastStep: UInt64? = 0
        var mayHaveFault = false
        for change in changes {
            lastStep = InputBounds.sum(lastStep, change.clockStep)
            mayHaveFault = mayHaveFault || change.isFaulty
        }
        self.init(header, .decoded(changes), lastStep: lastStep, mayHaveFault: mayHaveFault)
    }

    private convenience init(_ read: (header: WireTransaction, changes: EncodedChanges)) {
        self.init(
            read.header, .encoded(read.changes), lastStep: read.changes.lastStep, mayHaveFault: read.changes.hasFault)
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
            node: origin?.bytes ?? Array(header.origin), sequence: sequence,
            author: header.hasAuthor ? header.author : nil, timestamp: header.timestampMs, name: header.originName)
    }

    /// Calls `body` with each change, in order.
    package func forEachChange(_ body: (DecodedChange) throws -> Void) throws {
        switch changes {
        case .decoded(let changes): for change in changes { try body(change) }
        case .encoded(let changes): try changes.forEach(body)
        }
    }

    /// Returns the table of the first change if no change has a row identity. Returns nil otherwise.
    package func entityWithoutIdentity() throws -> String? {
        var first: String?
        var hasNamed = false
        try forEachChange { change in
            first = first ?? change.entity
            if change.hasIdentity { hasNamed = true }
        }
        return hasNamed ? nil : first
    }

    /// Checks that no change exceeds the size limit of this node.
    ///
    /// - Throws: ``WireError`` if a change has more bytes than `limit`.
    package func checkSizes(_ limit: Int) throws {
        switch changes {
        case .decoded(let changes): for change in changes { try check(change.entity, change.byteCount(), limit) }
        case .encoded(let changes): try check(changes.largest.entity, changes.largest.bytes, limit)
        }
    }

    private func check(_ entity: String, _ bytes: Int, _ limit: Int) throws(WireError) {
        guard bytes > limit else { return }
        throw WireError(
            "A change of \(entity) has \(bytes) bytes; the limit is \(limit) (security.limits.maxRowBytes).")
    }
}
