import Foundation
package import GRDB
package import MartletBus
import MartletCore
import MartletReplica
import MartletStore
package import MartletWire

/// Transactions that are too large for one message arrive in chunks. They are reassembled here: the store keeps the
/// chunks until all have arrived, so they survive a restart.
extension Receiver {
    /// Keeps the chunk, and returns the whole payload once all chunks are here.
    package func assemble(
        _ message: IncomingMessage, _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int),
        _ report: inout ApplyReport
    ) throws -> [UInt8]? {
        guard try saveChunk(envelope, chunk, message.payload, &report) else { return nil }
        if let assembled, assembled.envelope == envelope,
            try chunks.tally().sum(envelope.transaction, count: chunk.count).bytes == assembled.payload.count
        {
            try forgetChunks(envelope)
            return assembled.payload
        }
        var payload: [UInt8] = []
        var sizes: Set<Int> = []
        var last = 0
        try chunks.forEach(of: envelope.transaction, count: chunk.count) { bytes in
            payload += bytes
            if last > 0 { sizes.insert(last) }
            last = bytes.count
        }
        try forgetChunks(envelope)
        // All chunks but the last have one size. If they don't, they come from different sends.
        if envelope.size != nil, sizes.count > 1 { return [] }
        return payload
    }

    /// Returns how many bytes of the transaction are here from this send, without the chunk itself.
    package func chunkBytes(_ envelope: WireEnvelope, _ chunk: (index: Int, count: Int)) throws -> Int {
        let known = try chunks.tally().sum(envelope.transaction, count: chunk.count).bytes
        let replaced = try chunks.find(envelope.transaction, chunk)
        return known - (replaced?.count == chunk.count ? replaced?.bytes ?? 0 : 0)
    }

    /// Drops the chunks of other transactions if unfinished ones take more than their limit. The dropped transactions
    /// count as missing, and arrive again when their origin republishes them.
    private func makeRoom(for envelope: WireEnvelope, _ bytes: Int, _ report: inout ApplyReport) throws {
        let limit = engine.messageGuard.configuration.maxTransactionBytes
        for excess in try chunks.tally().excess(adding: bytes, to: envelope.transaction, limit: limit) {
            let dropped = WireEnvelope(origin: excess.origin, sequence: excess.sequence)
            try forgetChunks(dropped)
            report.droppedChunks += 1
            // This node's own transaction is not missing here: it was only not read back, and is sent again.
            if dropped.origin != context.node { try leaveOpen(dropped, &report) }
        }
    }

    /// Records that a chunk of a local transaction was read back, without its contents.
    ///
    /// - Returns: true once all of them were.
    package func isWhole(_ envelope: WireEnvelope, _ report: inout ApplyReport) throws -> Bool {
        guard let chunk = envelope.chunk else { return true }
        return try saveChunk(envelope, chunk, [], &report)
    }

    /// - Returns: true if all chunks are here now.
    private func saveChunk(
        _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int), _ bytes: [UInt8], _ report: inout ApplyReport
    ) throws -> Bool {
        try makeRoom(for: envelope, bytes.count, &report)
        return try chunks.save(envelope.transaction, chunk, bytes)
    }

    /// Keeps a chunk that a snapshot contains because the snapshot's maker did not have the whole transaction. Applies
    /// the transaction if all other chunks are here: this node may have begun to read in the middle of them.
    ///
    /// - Parameter isAhead: true if the maker had read further than this node. Chunks of two sends, which cut the
    ///   transaction into different numbers, can't both be completed: those that were read later count. If the maker
    ///   was ahead in one partition and behind in another, these may be the wrong ones. The transaction then stays
    ///   missing, until a check or a later snapshot brings it.
    package func takeChunk(
        ofSnapshot envelope: WireEnvelope, _ bytes: [UInt8], isAhead: Bool, _ report: inout ApplyReport
    ) throws {
        guard let chunk = envelope.chunk, try chunks.find(envelope.transaction, chunk)?.count != chunk.count,
            try isAhead || !chunks.tally().hasOther(envelope.transaction, count: chunk.count)
        else { return }
        let message = IncomingMessage(
            position: PartitionPosition(partition: -1, offset: -1), key: [], headers: [], payload: bytes,
            timestamp: -1, isBrokerTimestamp: false)
        switch try taken(chunk, of: envelope, message, &report) {
        case .waiting, .applied: break
        // The transaction can't be completed from the topic, which this node may have passed.
        case .refused: try leaveOpen(envelope, &report)
        case .refusedWhole(let payload, let error):
            report.add(try transactions.refuse(payload, error))
            try leaveOpen(envelope, &report)
        }
    }

    /// Deletes the remaining chunks of a transaction that is now here in full.
    package func forgetChunks(_ envelope: WireEnvelope) throws {
        try chunks.remove(envelope.transaction)
    }
}

/// A transaction that was assembled from its chunks and decoded before it is applied. For a large transaction, this
/// takes about as long as applying it.
///
/// Safe to prepare ahead: only the engine changes chunks, and it does one thing at a time.
package struct AssembledTransaction {
    package let envelope: WireEnvelope
    package let payload: [UInt8]
    package let transaction: Result<DecodedTransaction, WireError>

    /// Nil if chunks other than this one are missing, or if the engine has to check more closely.
    package init?(
        _ db: Database, _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int), _ bytes: [UInt8],
        _ limits: SecurityConfiguration
    ) throws {
        guard let size = envelope.size, size <= limits.maxTransactionBytes, chunk.count > 1, !bytes.isEmpty else {
            return nil
        }
        let others = Chunks.Others(db, envelope.transaction, besides: chunk)
        let known = try others.sum()
        guard known.chunks == chunk.count - 1, known.bytes + bytes.count == size else { return nil }
        var payload: [UInt8] = []
        payload.reserveCapacity(size)
        var isPlaced = false
        var length: Int?
        func add(_ index: Int, _ part: [UInt8]) -> Bool {
            // All chunks but the last have one size. If they don't, they come from different sends.
            if index < chunk.count - 1 {
                if let length, length != part.count { return false }
                length = part.count
            }
            payload += part
            return true
        }
        let isUniform = try others.forEach { index, part in
            if !isPlaced, index > chunk.index {
                isPlaced = true
                guard add(chunk.index, bytes) else { return false }
            }
            return add(index, part)
        }
        guard isUniform else { return nil }
        if !isPlaced { guard add(chunk.index, bytes) else { return nil } }
        guard payload.count == size else { return nil }
        self.envelope = envelope
        self.payload = payload
        transaction = Result { () throws(WireError) in try DecodedTransaction(payload: payload, isAhead: true) }
    }
}
