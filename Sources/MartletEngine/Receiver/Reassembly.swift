import MartletCore
import MartletReplica
import MartletWire

/// Reassembly of transactions that are too large for one message, and arrive in chunks. The store keeps the chunks
/// until all of them are here, so they survive a restart.
struct Reassembly {
    private let chunks: Chunks
    private let sequences: ReceivedSequences
    private let node: NodeID
    /// The size limit of one transaction, in bytes.
    private let limit: Int
    /// The size limit of one change, in bytes.
    private let maxRowBytes: Int
    /// The transaction that was assembled before the SQLite transaction began.
    private let ahead: AssembledTransaction?

    init(
        _ chunks: Chunks, _ sequences: ReceivedSequences, node: NodeID, _ limits: SecurityConfiguration,
        ahead: AssembledTransaction? = nil
    ) {
        self.chunks = chunks
        self.sequences = sequences
        self.node = node
        limit = limits.maxTransactionBytes
        maxRowBytes = limits.maxRowBytes
        self.ahead = ahead
    }

    /// The outcome of a chunk.
    enum Outcome {
        /// Other chunks of its transaction are missing.
        case waiting
        /// The chunk is refused, and not kept.
        case refused(WireError)
        /// All chunks are here, until ``forget(_:)`` deletes them. The payload may still be no transaction.
        case whole(TransactionPayload, Result<DecodedTransaction, WireError>)
    }

    /// Keeps a chunk of another node's transaction, and assembles the transaction once all of its chunks are here.
    ///
    /// - Parameter partition: where the topic has the chunk. Nil if it comes from elsewhere.
    func add(
        _ chunk: (index: Int, count: Int), of envelope: WireEnvelope, _ bytes: [UInt8], partition: Int32?,
        _ report: inout ApplyReport
    ) throws -> Outcome {
        let replacesAll = try chunks.areOfOtherSend(
            envelope.transaction, than: chunk, byteCount: bytes.count, size: envelope.size)
        // Checks both the size that the message states and the size that is here: either may be too large.
        let kept = replacesAll ? 0 : try keptBytes(of: envelope, besides: chunk)
        let known = max(envelope.size ?? 0, kept + bytes.count)
        guard known <= limit else { return .refused(.tooLarge(known, limit)) }
        guard !bytes.isEmpty else { return .refused(.emptyChunk) }
        guard try save(chunk, of: envelope, bytes, replacesAll: replacesAll, partition: partition, &report) else {
            report.chunks += 1
            return .waiting
        }
        return try assemble(envelope, chunk.count)
    }

    /// Records that a chunk of a local transaction was read back, without its contents.
    ///
    /// - Returns: true once the whole transaction was.
    func noteReadBack(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws -> Bool {
        guard let chunk = envelope.chunk else { return true }
        return try save(chunk, of: envelope, [], replacesAll: false, partition: nil, &report)
    }

    /// Returns whether to keep a chunk that a snapshot has.
    ///
    /// - Parameter isAhead: returns true if the snapshot's maker had read further than this node in the partition. Nil:
    ///   in any.
    func needs(
        _ chunk: (index: Int, count: Int), ofSnapshot envelope: WireEnvelope, isAhead: (Int32?) throws -> Bool
    ) throws -> Bool {
        let transaction = envelope.transaction
        guard try chunks.find(transaction, chunk)?.count != chunk.count else { return false }
        guard try chunks.tally().hasOther(transaction, count: chunk.count) else { return true }
        return try isAhead(chunks.partitionOfOther(transaction, count: chunk.count))
    }

    /// Deletes the remaining chunks of a transaction that is now here in full.
    func forget(_ envelope: WireEnvelope) throws { try chunks.remove(envelope.transaction) }

    // MARK: Keeping chunks

    /// - Returns: true if all chunks are here now.
    private func save(
        _ chunk: (index: Int, count: Int), of envelope: WireEnvelope, _ bytes: [UInt8], replacesAll: Bool,
        partition: Int32?, _ report: inout ApplyReport
    ) throws -> Bool {
        try makeRoom(for: envelope, bytes.count, &report)
        return try chunks.save(
            envelope.transaction, chunk, bytes, replacesAll: replacesAll, partition: partition)
    }

    /// Drops the chunks of other transactions if unfinished ones take more than their limit. The dropped transactions
    /// count as missing, and arrive again when their origin republishes them.
    private func makeRoom(for envelope: WireEnvelope, _ bytes: Int, _ report: inout ApplyReport) throws {
        for excess in try chunks.tally().excess(adding: bytes, to: envelope.transaction, limit: limit) {
            let dropped = WireEnvelope(origin: excess.origin, sequence: excess.sequence)
            try forget(dropped)
            report.droppedChunks += 1
            // This node's own transaction is not missing here: it was only not read back, and is sent again.
            if dropped.origin != node { try sequences.leaveOpen(dropped, &report) }
        }
    }

    /// Returns how many bytes of the transaction are here from this send, without the chunk itself.
    private func keptBytes(of envelope: WireEnvelope, besides chunk: (index: Int, count: Int)) throws -> Int {
        let known = try chunks.tally().sum(envelope.transaction, count: chunk.count).bytes
        let replaced = try chunks.find(envelope.transaction, chunk)
        return known - (replaced?.count == chunk.count ? replaced?.bytes ?? 0 : 0)
    }

    // MARK: Assembling

    private func assemble(_ envelope: WireEnvelope, _ count: Int) throws -> Outcome {
        if let ahead, ahead.envelope == envelope,
            try chunks.tally().sum(envelope.transaction, count: count).bytes == ahead.payload.count
        {
            return .whole(ahead.payload, ahead.transaction)
        }
        guard let stored = try chunks.payload(of: envelope.transaction, count: count),
            envelope.size == nil || stored.isUniform
        else { return .whole(.whole([]), .failure(.chunksDiffer)) }
        let payload = TransactionPayload.stored(stored)
        if let size = envelope.size, size != stored.count { return .whole(payload, .failure(.chunksDiffer)) }
        if let checksum = envelope.wholeChecksum, try payload.checksum() != checksum {
            return .whole(payload, .failure(.chunksDiffer))
        }
        return .whole(payload, try .reading { try DecodedTransaction(stored, maxChangeBytes: maxRowBytes) })
    }
}

extension WireError {
    static let chunksDiffer = WireError(
        "Its chunks come from different attempts to send it, and don't form a transaction.")

    /// Empty chunks take no space, so no size limit would bound their number.
    static let emptyChunk = WireError("The chunk is empty.")

    static func tooLarge(_ bytes: Int, _ limit: Int) -> WireError {
        WireError(
            "The transaction has at least \(bytes) bytes; the limit is \(limit) (security.limits.maxTransactionBytes)."
        )
    }
}
