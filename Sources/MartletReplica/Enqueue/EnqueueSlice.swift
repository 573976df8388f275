/// Limits how much of the local changes one SQLite commit enqueues. Other writers wait meanwhile, so it ends after a
/// number of changes, of bytes, or a time, whichever comes first, also in the middle of a transaction.
package struct EnqueueSlice {
    /// The limits that the caller of the ``Enqueuer`` sets.
    private let limits: EnqueueLimits
    private let instant: @Sendable () -> ContinuousClock.Instant
    private let end: ContinuousClock.Instant
    package private(set) var changeCount = 0
    private var byteCount = 0
    private var transactionCount = 0
    private var isOver = false

    /// - Parameter instant: a clock for intervals.
    package init(_ limits: EnqueueLimits, instant: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.limits = limits
        self.instant = instant
        end = instant() + limits.time
    }

    /// Whether another transaction may begin.
    package var hasRoom: Bool { hasRoomWithin && transactionCount < limits.transactions }

    /// Whether the open transaction may go on.
    package var hasRoomWithin: Bool { !isOver && changeCount < limits.changes && byteCount < limits.bytes }

    /// How many rows that wait for the end of a transaction are read at a time.
    package var partRows: Int { min(limits.changes, 200) }

    package mutating func note(_ byteCount: Int) {
        changeCount += 1
        self.byteCount += byteCount
        // Reading the clock costs a little, so it isn't read for every change.
        if changeCount % 64 == 0, instant() >= end { isOver = true }
    }

    package mutating func noteTransaction() {
        transactionCount += 1
        if transactionCount % 64 == 0, instant() >= end { isOver = true }
    }
}

/// The most that one commit enqueues.
package struct EnqueueLimits: Sendable, Equatable {
    /// Rows of the log. The last one may be followed by what results from it, such as changes of the rows that refer to
    /// a row with a new ID.
    package var changes = 5000
    /// Bytes of texts and blobs.
    package var bytes = 1 << 20
    package var transactions = 2000
    /// Writing and committing come on top.
    package var time: Duration = .milliseconds(25)

    package init() {}
}
