public import MartletCore
package import MartletReplica
package import MartletWire

/// The result of applying a batch of messages.
public struct ApplyReport: Sendable, Equatable {
    /// Transactions that were applied, at least in part.
    public var applied = 0
    /// When these transactions were committed at their origins, in milliseconds since 1970 by the origins' clocks.
    public var committed: [Int64] = []
    /// Transactions that had been applied before.
    public var duplicates = 0
    /// Messages that this node itself sent.
    public var own = 0
    /// Chunks that wait for the rest of their transaction.
    public var chunks = 0
    /// Transactions deferred until their clock is no longer ahead.
    public var deferred = 0
    /// Messages that can't be understood.
    public var quarantined = 0
    /// Incomplete transactions whose chunks were dropped because there were more than may be kept.
    public var droppedChunks = 0
    /// The gaps in origins' sequences that this batch found.
    public var gaps: [SequenceGap] = []
    /// How far this node's clock is ahead of the broker's, in milliseconds, as measured by this node's own messages;
    /// negative if it is behind.
    public var clockOffset: ClosedRange<Int64>?
    /// The transactions that were applied, one by one, if requested.
    package var traced: [TracedTransaction] = []
    /// Partitions whose messages differ from those that were read before: the log was truncated or recreated.
    public var rewound: [Int32] = []

    public init() {}

    /// Adds the outcome of one transaction.
    package mutating func add(_ outcome: TransactionApplier.Outcome) {
        quarantined += outcome.quarantined
        if outcome.isDeferred { deferred += 1 }
        guard let time = outcome.committed else { return }
        applied += 1
        committed.append(time)
    }

    /// A partition has to be reread.
    mutating func noteRewound(_ partition: Int32) {
        if !rewound.contains(partition) { rewound.append(partition) }
    }

    /// Takes a message of this node into account: the broker's clock read `appended` at some moment between those at
    /// which this node's clock read `made` and `read`.
    package mutating func noteOwn(made: Int64, appended: Int64, read: Int64) {
        // Ignored if the clock was set back in between.
        guard made <= read else { return }
        let offset = (made - appended)...(read - appended)
        guard let known = clockOffset, known.overlaps(offset) else {
            clockOffset = offset
            return
        }
        clockOffset = known.clamped(to: offset)
    }
}

/// Transactions of an origin that were never read.
public struct SequenceGap: Sendable, Equatable {
    public var origin: NodeID
    public var first: Int64
    public var last: Int64

    public init(origin: NodeID, first: Int64, last: Int64) {
        self.origin = origin
        self.first = first
        self.last = last
    }
}
