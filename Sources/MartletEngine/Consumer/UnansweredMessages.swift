/// Messages that were in flight to the broker when reading of a topic began.
struct UnansweredMessages {
    /// The sequence up to which messages were sent.
    let last: Int64
    /// The ends of the partitions once all of these messages were acknowledged. Nil until then.
    var ends: [Int32: Int64]?

    /// Nil if nothing was in flight.
    init?(_ progress: PublisherProgress) {
        guard progress.sent > progress.acknowledged else { return nil }
        last = progress.sent
    }
}
