public import Foundation

/// What a node takes from the topic, and from whom.
public struct SecurityConfiguration: Sendable, Equatable {
    /// What becomes of messages that are not sealed, on a node that has a key ring.
    public enum PlaintextPolicy: Sendable, Equatable {
        /// They are quarantined. The default.
        case refuse
        /// They are taken, for as long as not every node has a key ring.
        case accept
        /// Those are taken that the broker stamped (`LogAppendTime`) before this moment. A producer's own time counts
        /// for nothing.
        case before(Date)
    }

    public var acceptPlaintext = PlaintextPolicy.refuse
    /// The nodes whose messages are taken, each with the public keys by which it may sign. A node without a key need
    /// not sign: then whoever can write to the topic can write in its name. Nil (the default): all nodes, unsigned.
    public var origins: [UUID: [NodePublicKey]]?
    /// The most bytes of one message's payload, as it came. A larger one is quarantined. Default: 16 MiB.
    public var maxMessageBytes = 16 << 20
    /// The most bytes of a transaction, or of a part of a snapshot, that comes in chunks. Default: 256 MiB.
    public var maxTransactionBytes = 256 << 20
    /// The most bytes of one change, as it is encoded: a row with all its columns. Default: 64 MiB.
    public var maxRowBytes = 64 << 20
    /// The most bytes that quarantined messages take in the store. Beyond them, messages are counted, and not kept.
    /// Default: 256 MiB.
    public var maxQuarantineBytes = 256 << 20

    public init() {}

    /// Every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if maxMessageBytes < 10_000 { problems.append("maxMessageBytes: \(maxMessageBytes) must be at least 10000") }
        if maxTransactionBytes < maxMessageBytes {
            problems.append("maxTransactionBytes: \(maxTransactionBytes) must be at least maxMessageBytes")
        }
        if maxQuarantineBytes < maxMessageBytes {
            problems.append("maxQuarantineBytes: \(maxQuarantineBytes) must be at least maxMessageBytes")
        }
        if maxRowBytes < 1000 { problems.append("maxRowBytes: \(maxRowBytes) must be at least 1000") }
        if let origins, origins.isEmpty {
            problems.append("origins: is empty, so no message would be accepted; remove it")
        }
        return problems
    }
}
