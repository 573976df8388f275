/// How far reading has come.
public struct ConsumerProgress: Sendable, Equatable {
    /// How far a partition is read, and how far behind that is.
    public struct Lag: Sendable, Equatable {
        public var partition: Int32
        /// Messages that wait.
        public var messages: Int64
        /// How long the oldest of them may have been waiting. Zero where none does.
        public var time: Duration
    }

    /// When the consumer was made.
    public var startedAt: ContinuousClock.Instant
    /// Transactions applied since the start.
    public var applied = 0
    /// The next offset to read, by partition.
    public var positions: [Int32: Int64] = [:]
    /// The end of each partition, as last seen.
    public var ends: [Int32: Int64] = [:]
    /// When the last message that was read was appended, by partition, in milliseconds since 1970 by the broker's
    /// clock, or the producer's where the topic has no timestamps of the broker.
    public var appended: [Int32: Int64] = [:]
    /// When each partition was last read to its end.
    public var caughtUpAt: [Int32: ContinuousClock.Instant] = [:]
    /// When the broker was last asked without an error.
    public var steppedAt: ContinuousClock.Instant?
    /// How far loading a snapshot has come, or came since the start.
    public var snapshot: SnapshotProgress?
    /// What holds reading up, while something does.
    public var problem: String?

    public init(startedAt: ContinuousClock.Instant) { self.startedAt = startedAt }

    /// How far behind each partition is whose end is known.
    ///
    /// What waits is younger than the message before it, and has come since the partition was last read to its end: the
    /// time is the smaller of the two.
    ///
    /// - Parameter milliseconds: the wall clock, since 1970.
    public func lags(at now: ContinuousClock.Instant, milliseconds: Int64) -> [Lag] {
        ends.sorted { $0.key < $1.key }.map { partition, end in
            let messages = max(0, end - (positions[partition] ?? 0))
            guard messages > 0 else { return Lag(partition: partition, messages: 0, time: .zero) }
            let sinceEnd = now - (caughtUpAt[partition] ?? startedAt)
            guard let appended = appended[partition] else {
                return Lag(partition: partition, messages: messages, time: sinceEnd)
            }
            let age = Duration.milliseconds(max(0, milliseconds - appended))
            return Lag(
                partition: partition, messages: messages,
                time: caughtUpAt[partition] == nil ? age : min(age, sinceEnd))
        }
    }
}
