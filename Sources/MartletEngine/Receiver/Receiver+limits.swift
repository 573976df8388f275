package import MartletWire

extension WireError {
    package static let chunksDiffer = WireError(
        "Its chunks come from different attempts to send it, and don't form a transaction.")

    /// Empty chunks take no space, so no size limit would bound their number.
    package static let emptyChunk = WireError("The chunk is empty.")

    package static func tooLarge(_ bytes: Int, _ limit: Int) -> WireError {
        WireError(
            "The transaction has at least \(bytes) bytes; the limit is \(limit) (security.limits.maxTransactionBytes)."
        )
    }
}
