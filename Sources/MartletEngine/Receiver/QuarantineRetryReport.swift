/// The result of retrying quarantined messages.
public struct QuarantineRetryReport: Sendable, Equatable {
    /// Messages that this program now understands: applied, and removed from the quarantine.
    public var applied = 0
    /// Messages that this program now understands, but whose clock is ahead: removed, and parked until it no longer is.
    public var parked = 0
    /// Messages whose transaction arrived some other way: removed.
    public var superseded = 0
    /// Chunks that this program now understands: removed, and kept until the rest of their transaction arrives.
    public var chunks = 0
    /// Messages that still can't be understood: they stay, with today's reason.
    public var kept = 0
    /// Those of the kept messages that the store doesn't have in full. The agent rereads them from the topic when it
    /// starts, if the limits (`security.limits`) then allow it.
    public var unkept = 0

    public init() {}

    mutating func add(_ other: QuarantineRetryReport) {
        applied += other.applied
        parked += other.parked
        superseded += other.superseded
        chunks += other.chunks
        kept += other.kept
        unkept += other.unkept
    }

    mutating func add(_ outcome: QuarantineRetry.Outcome) {
        switch outcome {
        case .accepted: applied += 1
        case .waiting: chunks += 1
        case .superseded: superseded += 1
        case .assembled, .notUnderstood: kept += 1
        case .notKept:
            kept += 1
            unkept += 1
        }
    }
}
