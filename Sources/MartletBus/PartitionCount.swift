/// The number of a topic's partitions when a consumer was connected. The topic is asked for it again at intervals,
/// because no event says that it got more.
package struct PartitionCount: Sendable {
    package let value: Int
    private var askedAt: ContinuousClock.Instant

    package init(_ value: Int, at now: ContinuousClock.Instant) {
        self.value = value
        askedAt = now
    }

    /// Asks the topic, if the interval has passed since it was last asked.
    ///
    /// - Parameter timeout: how long this may take.
    /// - Returns: true if the number has changed.
    package mutating func hasChanged(
        _ consumer: any BusConsumer, every interval: Duration, timeout: Duration, at now: ContinuousClock.Instant
    ) throws(BusError) -> Bool {
        guard now >= askedAt + interval else { return false }
        askedAt = now
        return try consumer.partitionCount(timeout: timeout) != value
    }
}
