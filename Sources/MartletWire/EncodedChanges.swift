import Dispatch
import MartletCore
import Synchronization

/// The changes of a large transaction, still encoded. They are decoded block by block as they are needed: all at once,
/// they would take ten times the memory.
package struct EncodedChanges: Sendable {
    /// The encoded transaction as a whole.
    private let payload: [UInt8]
    package private(set) var count = 0
    /// The time of the last change's stamp, relative to the transaction's time. Nil if the sum overflows.
    package private(set) var lastStep: UInt64? = 0
    /// The largest change.
    package private(set) var largest: (entity: String, bytes: Int) = ("", 0)

    /// The size from which on a transaction is decoded change by change. A smaller one can't have more fields than the
    /// limit for decoding as a whole.
    package static let minBytes = 2 * WireShape.maxFields
    /// A change has at least its table, its kind and its identity.
    private static let minChangeBytes = 8
    /// The limit for all parts of a transaction other than its changes. It exceeds what the names and the rest can
    /// take.
    private static let maxHeaderBytes = 1 << 20

    /// True if some change can't be understood.
    package private(set) var hasFault = false

    /// Reads all changes once, so that an invalid change is found before any other is applied.
    ///
    /// - Returns: the transaction without its changes, and the changes.
    /// - Throws: ``WireError`` if the bytes are not a transaction.
    package static func read(_ payload: [UInt8]) throws(WireError) -> (header: WireTransaction, changes: EncodedChanges)
    {
        var changes = EncodedChanges(payload: payload)
        var header: [UInt8] = []
        var end = 0
        var ranges = ChangeRanges(payload)
        while let range = try ranges.next() {
            guard header.count + range.whole.lowerBound - end <= maxHeaderBytes else { throw tooLong }
            header += payload[end..<range.whole.lowerBound]
            end = range.whole.upperBound
            try changes.note(range.content)
        }
        guard header.count + payload.count - end <= maxHeaderBytes else { throw tooLong }
        header += payload[end...]
        let decoded = try WireFormat.decode(header)
        guard decoded.changes.isEmpty else {
            throw WireError("The payload is not a transaction: it has changes in two places.")
        }
        return (decoded, changes)
    }

    private init(payload: [UInt8]) { self.payload = payload }

    private static let tooLong = WireError(
        "The transaction without its changes has more than \(maxHeaderBytes) bytes.")

    private mutating func note(_ range: Range<Int>) throws(WireError) {
        count += 1
        guard count <= payload.count / Self.minChangeBytes else {
            throw WireError("The transaction has more changes than \(payload.count) bytes can describe.")
        }
        let change = try decode(range)
        lastStep = InputBounds.sum(lastStep, change.clockStep)
        if range.count > largest.bytes { largest = (change.entity, range.count) }
        hasFault = hasFault || change.isFaulty
    }

    private func decode(_ range: Range<Int>, after previous: DecodedChange? = nil) throws(WireError) -> DecodedChange {
        DecodedChange(
            try WireFormat.decodeChange(Array(payload[range]), as: WireEncoding(of: payload)), after: previous)
    }

    /// Calls `body` with each change, in order. Decodes the next block meanwhile on another thread.
    package func forEach(_ body: (DecodedChange) throws -> Void) throws {
        var ranges = ChangeRanges(payload)
        var block = decoding(try Self.block(&ranges))
        while let current = block {
            let next = try Self.block(&ranges)
            let changes = try current.wait()
            block = decoding(next)
            for change in changes { try body(change) }
        }
    }

    /// The size of a block: how many bytes of changes are decoded ahead of applying them.
    private static let blockBytes = 64 << 10

    private static func block(_ ranges: inout ChangeRanges) throws(WireError) -> [Range<Int>] {
        var block: [Range<Int>] = []
        var bytes = 0
        while bytes < blockBytes, let range = try ranges.next() {
            block.append(range.content)
            bytes += range.whole.count
        }
        return block
    }

    private func decoding(_ block: [Range<Int>]) -> Block? {
        guard !block.isEmpty else { return nil }
        let result = Block()
        DispatchQueue.global(qos: .userInitiated).async(group: result.group) {
            let decoded = Result { () throws(WireError) in
                var changes: [DecodedChange] = []
                changes.reserveCapacity(block.count)
                for range in block { changes.append(try decode(range, after: changes.last)) }
                return changes
            }
            result.changes.withLock { $0 = decoded }
        }
        return result
    }

    private final class Block: Sendable {
        let group = DispatchGroup()
        let changes = Mutex(Result<[DecodedChange], WireError>.success([]))

        func wait() throws -> [DecodedChange] {
            group.wait()
            return try changes.withLock { $0 }.get()
        }
    }
}

/// The positions of the changes in an encoded transaction.
private enum ChangeRanges {
    case protobuf(ProtobufFields, [UInt8])
    case json(JSONElements, [UInt8])

    /// The number of the field `changes` of `Transaction`.
    private static let field = 8

    init(_ payload: [UInt8]) {
        self =
            switch WireEncoding(of: payload) {
            case .json: .json(JSONElements(of: "changes"), payload)
            case .protobuf: .protobuf(ProtobufFields(0..<payload.count), payload)
            }
    }

    /// Returns the position of the next change: with its framing, and its content alone. Returns nil after the last.
    mutating func next() throws(WireError) -> (whole: Range<Int>, content: Range<Int>)? {
        switch self {
        case .protobuf(var fields, let payload):
            defer { self = .protobuf(fields, payload) }
            while true {
                guard let field = try fields.next(in: payload) else { return nil }
                if field.number == Self.field, let content = field.content { return (field.whole, content) }
            }
        case .json(var elements, let payload):
            defer { self = .json(elements, payload) }
            return try elements.next(in: payload)
        }
    }
}
