import MartletStore
import SwiftProtobuf

extension WireError {
    static let chunksDiffer = WireError("Its chunks are of different sendings, and don't make a transaction.")

    /// Any number of them would be of no size.
    static let emptyChunk = WireError("It is a chunk with nothing in it.")

    static func tooLarge(_ bytes: Int, _ limit: Int) -> WireError {
        WireError(
            "The transaction has at least \(bytes) bytes; this node takes \(limit) (security.limits.maxTransactionBytes)."
        )
    }
}

/// What is too large to be taken.
extension Receiver {
    /// - Parameter bytes: of the transaction: none of its changes has more.
    /// - Throws: ``WireError`` where a change has more bytes than this node takes.
    func checkRows(_ transaction: WireTransaction, _ bytes: Int) throws {
        let limit = engine.messageGuard.configuration.maxRowBytes
        guard bytes > limit else { return }
        for change in transaction.changes {
            let encoded: [UInt8] = try change.serializedBytes()
            guard encoded.count > limit else { continue }
            throw WireError(
                "A change of \(change.entity) has \(encoded.count) bytes; this node takes \(limit) (security.limits.maxRowBytes)."
            )
        }
    }
}
