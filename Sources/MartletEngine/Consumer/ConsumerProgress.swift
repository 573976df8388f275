public import Foundation

/// How far reading has come.
public struct ConsumerProgress: Sendable, Equatable {
    /// How far a partition was read, and how far behind that is.
    public struct Lag: Sendable, Equatable {
        public var partition: Int32
        /// The number of unread messages.
        public var messages: Int64
        /// How long the oldest of them may have been waiting. Zero if there is none.
        public var time: Duration

        package init(partition: Int32, messages: Int64, time: Duration) {
            self.partition = partition
            self.messages = messages
            self.time = time
        }
    }

    /// When the consumer was made.
    public var startedAt: ContinuousClock.Instant
    /// Transactions applied since the start.
    public var applied = 0
    /// The next offset to read, by partition.
    public var positions: [Int32: Int64] = [:]
    /// The end of each partition, as last seen. Once the partition was read to its end, without what may lie there and
    /// is no message, such as the markers that end Kafka's transactions.
    public var ends: [Int32: Int64] = [:]
    /// When the last message that was read was appended, by partition, in milliseconds since 1970. By the broker's
    /// clock, or by the producer's if the topic has no broker timestamps.
    public var appended: [Int32: Int64] = [:]
    /// True once all partitions were read to their ends since they were assigned. False while there is no connection.
    package var hasReadToEnd = false
    /// When each partition was last read to its end.
    public var caughtUpAt: [Int32: ContinuousClock.Instant] = [:]
    /// When the broker was last polled without an error.
    public var steppedAt: ContinuousClock.Instant?
    /// The progress of the current snapshot, or of the last one loaded since the start.
    public var snapshot: SnapshotProgress?
    /// True while a snapshot is loaded in part: the rows are of no single moment until the rest is loaded.
    public var hasUnfinishedSnapshot = false
    /// Since when this node lacks transactions that the topic dropped before it read them, and that only a snapshot can
    /// supply. Nil if it lacks none.
    public var awaitsSnapshotSince: Date?
    /// When the wait for it ends without one: where no node makes any, none comes. Nil if none is awaited.
    package var awaitsSnapshotUntil: ContinuousClock.Instant?
    /// The reason why reading is held up. Nil while nothing holds it up.
    public var problem: String?

    public init(startedAt: ContinuousClock.Instant) { self.startedAt = startedAt }

    /// Returns true once the topic was read to its end since the start, and nothing is missing that a snapshot may
    /// bring.
    package func hasCaughtUp(at now: ContinuousClock.Instant) -> Bool {
        hasReadToEnd && !hasUnfinishedSnapshot && awaitsSnapshotUntil.map { $0 <= now } ?? true
    }

    /// How long a snapshot is waited for, in milliseconds. Another node makes it within a minute of the request, and it
    /// has to be loaded.
    package static let snapshotPatience: Int64 = 300_000

    /// The number of messages that are not read yet, as far as the ends of the partitions are known.
    package var waiting: Int64 { ends.reduce(0) { $0 + unread($1.key, end: $1.value) } }

    private func unread(_ partition: Int32, end: Int64) -> Int64 { max(0, end - (positions[partition] ?? 0)) }

    /// Returns how far behind each partition with a known end is.
    ///
    /// The waiting messages are younger than the message before them, and arrived after the partition was last read to
    /// its end. The time is the smaller of the two ages.
    ///
    /// - Parameter milliseconds: the wall clock, since 1970.
    public func lags(at now: ContinuousClock.Instant, milliseconds: Int64) -> [Lag] {
        ends.sorted { $0.key < $1.key }.map { partition, end in
            let messages = unread(partition, end: end)
            guard messages > 0 else { return Lag(partition: partition, messages: 0, time: .zero) }
            let sinceEnd = now - (caughtUpAt[partition] ?? startedAt)
            // A message may have no time.
            guard let appended = appended[partition], appended >= 0 else {
                return Lag(partition: partition, messages: messages, time: sinceEnd)
            }
            let age = Duration.milliseconds(max(0, milliseconds - appended))
            return Lag(
                partition: partition, messages: messages,
                time: caughtUpAt[partition] == nil ? age : min(age, sinceEnd))
        }
    }
}
