import Dispatch
import MartletCore
import Synchronization

/// The changes of a large transaction, still encoded. They are read and decoded block by block as they are needed: all
/// at once, they would take ten times the memory.
package struct EncodedChanges: Sendable {
    /// The encoded transaction as a whole.
    private let payload: TransactionPayload
    private let maxChangeBytes: Int
    package private(set) var count = 0
    /// The time of the last change's stamp, relative to the transaction's time. Nil if the sum overflows.
    package private(set) var lastStep: UInt64? = 0
    /// The largest change.
    package private(set) var largest: (entity: String, bytes: Int) = ("", 0)

    /// The size from which on a transaction is decoded change by change. A smaller one can't have more fields than the
    /// limit for decoding as a whole.
    package static let minBytes = 2 * WireShape.maxFields
    /// No limit for changes: for payloads that are in memory, or were accepted before.
    package static let anyChangeBytes = Int.max / 2
    /// A change has at least its table, its kind and its identity.
    private static let minChangeBytes = 8

    /// True if some change can't be understood.
    package private(set) var hasFault = false

    /// Reads all changes once, so that an invalid change is found before any other is applied.
    ///
    /// - Parameter maxChangeBytes: the limit for a change that is in several pieces of the payload.
    /// - Returns: the transaction without its changes, and the changes.
    /// - Throws: ``WireError`` if the bytes are not a transaction, or the error of whatever keeps them.
    package static func read(
        _ payload: TransactionPayload, maxChangeBytes: Int
    ) throws -> (header: WireTransaction, changes: EncodedChanges) {
        defer { payload.rewind() }
        var changes = EncodedChanges(payload: payload, maxChangeBytes: maxChangeBytes)
        var reader = try ChangeReader(payload, maxChangeBytes: maxChangeBytes)
        var names = KnownNames()
        while let range = try reader.next() {
            try changes.note(DecodedChange(reader.window, range, as: reader.encoding, &names), range.count)
        }
        let header = try WireFormat.decode(reader.header)
        guard header.changes.isEmpty else {
            throw WireError("The payload is not a transaction: it has changes in two places.")
        }
        return (header, changes)
    }

    /// The same for a payload that is in memory.
    package static func read(_ payload: [UInt8]) throws(WireError) -> (header: WireTransaction, changes: EncodedChanges)
    {
        do {
            return try read(.whole(payload), maxChangeBytes: anyChangeBytes)
        } catch let error as WireError {
            throw error
        } catch {
            // Only reading from elsewhere has other errors.
            throw WireError("The payload is not a transaction: \(error)")
        }
    }

    private init(payload: TransactionPayload, maxChangeBytes: Int) {
        self.payload = payload
        self.maxChangeBytes = maxChangeBytes
    }

    private mutating func note(_ change: DecodedChange, _ byteCount: Int) throws(WireError) {
        count += 1
        guard count <= payload.count / Self.minChangeBytes else {
            throw WireError("The transaction has more changes than \(payload.count) bytes can describe.")
        }
        lastStep = InputBounds.sum(lastStep, change.clockStep)
        if byteCount > largest.bytes { largest = (change.entity, byteCount) }
        hasFault = hasFault || change.isFaulty
    }

    /// Calls `body` with each change, in order. Decodes the next block meanwhile on another thread.
    package func forEach(_ body: (DecodedChange) throws -> Void) throws {
        defer { payload.rewind() }
        var reader = try ChangeReader(payload, maxChangeBytes: maxChangeBytes)
        var block = Self.decoding(try reader.block(Self.blockBytes), reader.encoding)
        while let current = block {
            let next = try reader.block(Self.blockBytes)
            let changes = try current.wait()
            block = Self.decoding(next, reader.encoding)
            for change in changes { try body(change) }
        }
    }

    /// The size of a block: how many bytes of changes are decoded ahead of applying them.
    private static let blockBytes = 64 << 10

    private static func decoding(
        _ block: (bytes: [UInt8], changes: [Range<Int>])?, _ encoding: WireEncoding
    ) -> Block? {
        guard let (bytes, ranges) = block else { return nil }
        let result = Block()
        DispatchQueue.global(qos: .userInitiated).async(group: result.group) {
            let decoded = Result { () throws(WireError) in
                var names = KnownNames()
                var changes: [DecodedChange] = []
                changes.reserveCapacity(ranges.count)
                for range in ranges { changes.append(try DecodedChange(bytes, range, as: encoding, &names)) }
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
