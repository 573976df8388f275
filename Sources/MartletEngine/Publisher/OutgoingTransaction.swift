import MartletBus
import MartletCore
import MartletReplica
import MartletWire

/// A transaction on its way to the producer, message by message, so that a large one is never in memory as a whole.
struct OutgoingTransaction {
    let sequence: Int64
    let origin: NodeID
    private var payload: OutboxPayload
    private let chunker: Chunker
    private let trace: [MessageHeader]
    private let count: Int
    /// Whether to send the checksum of the whole transaction. Not with encrypted messages: it would tell others about
    /// the contents.
    private let hasChecksum: Bool
    private var checksum: [UInt8]?
    private var sent = 0
    /// The next message, while the producer has no room for it.
    private var message: OutgoingMessage?

    init(
        sequence: Int64, origin: NodeID, payload: OutboxPayload, chunker: Chunker, isSealed: Bool,
        trace: [MessageHeader]
    ) {
        self.sequence = sequence
        self.origin = origin
        self.payload = payload
        self.chunker = chunker
        self.trace = trace
        count = chunker.count(for: payload.count)
        hasChecksum = count > 1 && !isSealed
    }

    /// How many messages have not been sent yet.
    var rest: Int { count - sent }

    /// Returns the message to send next, the same one until ``noteSent()``. Nil after the last one.
    mutating func next(
        _ read: (Range<Int>, inout OutboxPayload) throws -> [UInt8]
    ) throws -> OutgoingMessage? {
        guard sent < count else { return nil }
        if let message { return message }
        if hasChecksum, checksum == nil { checksum = try wholeChecksum(read) }
        let bytes = try read(chunker.range(sent, of: payload.count), &payload)
        let made = chunker.message(
            sent, sequence: sequence, payload: bytes, size: payload.count, checksum: checksum, trace: trace)
        message = made
        return made
    }

    /// Reads the whole transaction once more than it takes to send it: already the first chunk has the checksum.
    private mutating func wholeChecksum(
        _ read: (Range<Int>, inout OutboxPayload) throws -> [UInt8]
    ) throws -> [UInt8] {
        var sum = CRC32.Sum()
        for index in 0..<count { sum.add(try read(chunker.range(index, of: payload.count), &payload)) }
        return sum.digits
    }

    mutating func noteSent() {
        sent += 1
        message = nil
    }
}
