package import GRDB
import MartletReplica
package import MartletWire

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
