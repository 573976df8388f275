package import GRDB
import MartletReplica
package import MartletWire

/// A transaction whose chunks are all here, and that was decoded once before it is applied. For a large transaction,
/// this takes about as long as applying it.
///
/// Safe to prepare ahead: only the engine changes chunks, and it does one thing at a time.
package struct AssembledTransaction {
    package let envelope: WireEnvelope
    package let payload: TransactionPayload
    package let transaction: Result<DecodedTransaction, WireError>

    /// Nil if chunks other than this one are missing, or if the engine has to check more closely.
    package init?(
        _ db: Database, _ envelope: WireEnvelope, _ chunk: (index: Int, count: Int), _ bytes: [UInt8],
        _ limits: SecurityConfiguration
    ) throws {
        guard let size = envelope.size, size <= limits.maxTransactionBytes, chunk.count > 1, !bytes.isEmpty else {
            return nil
        }
        let stored = try StoredChunks(
            db, envelope.transaction, count: chunk.count, arrived: (chunk.index, bytes))
        guard let stored, stored.isUniform, stored.count == size else { return nil }
        let payload = TransactionPayload.stored(stored)
        if let checksum = envelope.wholeChecksum, try payload.checksum() != checksum { return nil }
        self.envelope = envelope
        self.payload = payload
        transaction = try .reading { try DecodedTransaction(stored, maxChangeBytes: limits.maxRowBytes) }
    }
}

extension Result where Failure == WireError {
    /// Returns the result of `body`, or its ``/MartletWire/WireError``.
    ///
    /// - Throws: any other error: the store's.
    static func reading(_ body: () throws -> Success) throws -> Self {
        do {
            return .success(try body())
        } catch let error as WireError {
            return .failure(error)
        }
    }
}
