import MartletMerge
public import MartletReplica
public import MartletWire

/// The configuration of a node's sync.
public struct SyncConfiguration: Sendable, Equatable {
    /// The node's name for people. Absent: its UUID.
    public var name: String?
    public var encoding: WireEncoding = .protobuf
    /// The largest payload of one message, in bytes; a larger transaction goes in chunks. Must be below the broker's
    /// `message.max.bytes` (1,048,588 by default).
    public var maxMessageBytes: Int = 900_000
    /// How far a remote clock may be ahead of this machine's before the transaction is parked.
    public var maxClockSkew: Duration = .seconds(300)
    /// The most messages of the transactions' topic that one read returns, and that one SQLite commit applies. A chunk
    /// of a large transaction counts as a message. Also the most quarantined messages that one commit retries after a
    /// key has arrived.
    public var applyBatchTransactions: Int = 500
    /// The most bytes of messages that one read of the transactions' topic returns, apart from a single larger message.
    /// At most three batches are in memory at a time, encrypted ones twice. Together with the cache of the store and
    /// what the bus reads ahead, this bounds the memory that a node needs to receive a transaction of any size.
    public var applyBatchBytes: Int = 4 << 20
    /// The most unacknowledged bytes on their way to the broker.
    public var maxInFlightBytes: Int = 8 << 20
    /// What is published, and what is taken from other nodes. Nil (the default): the filters that the store already
    /// has, at first none.
    public var filters: SyncFilters?
    /// Which messages carry W3C Trace Context headers.
    public var traceHeaders = TraceHeaders.never
    /// How many clocks of rows without an integer key are collected before they are flushed to their side tables, in
    /// several commits. Tests set fewer.
    package var recentClocks: Int = 49_000
    /// How much one SQLite commit enqueues. Tests set less.
    package var enqueueLimits = EnqueueLimits()
    /// The time after which a commit that applies messages takes no more of them; five times as long while nobody else
    /// has the file open. Writing and committing come on top. Tests set less.
    package var applyTime: Duration = .milliseconds(40)
    /// How long a commit waits for transactions of other processes that have read, and may be about to write. Tests
    /// wait longer.
    package var readerPatience: Duration = .milliseconds(250)
    /// How long to wait before each attempt to republish what the topic lacks. Tests wait less.
    package var republishPauses = RepublishPolicy.defaultPauses

    /// The values of ``applyBatchBytes``: up to 1 GiB.
    private static let batchBytes = 1000...1 << 30

    public init() {}

    /// Returns every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if let name, name.isEmpty || name.utf8.count > 200 { problems.append("name: must have 1 to 200 bytes") }
        if let name, name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            problems.append("name: must not contain control characters")
        }
        if maxMessageBytes < 1000 { problems.append("maxMessageBytes: \(maxMessageBytes) must be at least 1000") }
        if maxClockSkew < .zero { problems.append("maxClockSkew: \(maxClockSkew) must not be negative") }
        if applyBatchTransactions < 1 {
            problems.append("applyBatchTransactions: \(applyBatchTransactions) must be at least 1")
        }
        if !Self.batchBytes.contains(applyBatchBytes) {
            problems.append(
                "applyBatchBytes: \(applyBatchBytes) must be between \(Self.batchBytes.lowerBound) and "
                    + "\(Self.batchBytes.upperBound)")
        }
        if maxInFlightBytes < maxMessageBytes {
            problems.append("maxInFlightBytes: \(maxInFlightBytes) must be at least maxMessageBytes")
        }
        return problems
    }
}
