/// Messages that were in flight to the broker when reading of a topic began.
package struct UnansweredMessages {
    /// The sequence up to which messages were sent.
    package let last: Int64
    /// The ends of the partitions once all of these messages were acknowledged. Nil until then.
    package var ends: [Int32: Int64]?

    /// Nil if nothing was in flight.
    package init?(_ progress: PublisherProgress) {
        guard progress.sent > progress.acknowledged else { return nil }
        last = progress.sent
    }
}
