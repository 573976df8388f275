/// What was on its way to the broker when a topic began to be read.
struct UnansweredMessages {
    /// The sequence up to which messages were sent.
    let last: Int64
    /// Where the partitions ended once all of it was acknowledged. Nil until then.
    var ends: [Int32: Int64]?

    /// Nil where nothing was on its way.
    init?(_ progress: PublisherProgress) {
        guard progress.sent > progress.acknowledged else { return nil }
        last = progress.sent
    }
}
