/// How much of the local changes one SQLite commit enqueues. Other writers wait meanwhile, so it ends after so many
/// changes, so many bytes or so much time, whichever comes first, also in the middle of a transaction.
struct EnqueueSlice {
    /// What the caller of the registrar allows.
    private let limits: EnqueueLimits
    private let instant: @Sendable () -> ContinuousClock.Instant
    private let end: ContinuousClock.Instant
    private(set) var changeCount = 0
    private var byteCount = 0
    private var transactionCount = 0
    private var isOver = false

    /// - Parameter instant: a clock for intervals.
    init(_ limits: EnqueueLimits, instant: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.limits = limits
        self.instant = instant
        end = instant() + limits.time
    }

    /// Whether another transaction may begin.
    var hasRoom: Bool { hasRoomWithin && transactionCount < limits.transactions }

    /// Whether the transaction that has begun may go on.
    var hasRoomWithin: Bool { !isOver && changeCount < limits.changes && byteCount < limits.bytes }

    /// How many rows that wait for the end of something are read at a time.
    var partRows: Int { min(limits.changes, 200) }

    mutating func note(_ byteCount: Int) {
        changeCount += 1
        self.byteCount += byteCount
        // Asking costs a little.
        if changeCount % 64 == 0, instant() >= end { isOver = true }
    }

    mutating func noteTransaction() {
        transactionCount += 1
        if transactionCount % 64 == 0, instant() >= end { isOver = true }
    }
}

/// The most that one commit enqueues.
package struct EnqueueLimits: Sendable, Equatable {
    /// Rows of the log; the last one may be followed by what follows from it, such as the rows that refer to a renamed
    /// one.
    package var changes = 5000
    /// Of texts and blobs.
    package var bytes = 1 << 20
    package var transactions = 2000
    /// Writing and committing come on top.
    package var time: Duration = .milliseconds(25)

    package init() {}
}
