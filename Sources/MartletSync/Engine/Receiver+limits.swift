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
