public import Foundation

/// The messages that a node accepts from the topic, and the nodes that it accepts them from.
public struct SecurityConfiguration: Sendable, Equatable {
    /// The treatment of unencrypted messages on a node that has a key ring.
    public enum PlaintextPolicy: Sendable, Equatable {
        /// They go to the dead-letter queue (quarantine). The default.
        case refuse
        /// They are accepted. For the time until every node has a key ring.
        case accept
        /// They are accepted if the broker stamped them (`LogAppendTime`) before this moment. Timestamps of producers
        /// don't count.
        case before(Date)
    }

    public var acceptPlaintext = PlaintextPolicy.refuse
    /// The nodes whose messages are accepted, each with the public keys that it may sign with. A node with an empty
    /// list of keys need not sign: then anyone who can write to the topic can impersonate it. Nil (the default):
    /// messages of all nodes are accepted, unsigned.
    public var origins: [UUID: [NodePublicKey]]?
    /// The maximum size of one message's payload as received, in bytes. A larger message is quarantined. Default: 16
    /// MiB.
    public var maxMessageBytes = 16 << 20
    /// The maximum size of a chunked transaction or snapshot part, in bytes. At most 1 TiB. Default: 256 MiB.
    public var maxTransactionBytes = 256 << 20
    /// The maximum encoded size of one change, a row with all its columns, in bytes. Default: 64 MiB.
    public var maxRowBytes = 64 << 20
    /// The maximum size of all quarantined messages in the store, in bytes. Messages beyond it are counted, but not
    /// kept. Default: 256 MiB.
    public var maxQuarantineBytes = 256 << 20

    public init() {}

    /// Sums of transactions are compared with multiples of the limit, which must be numbers, too.
    private static let mostTransactionBytes = 1 << 40

    /// Returns every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if maxMessageBytes < 10_000 { problems.append("maxMessageBytes: \(maxMessageBytes) must be at least 10000") }
        if maxTransactionBytes < maxMessageBytes {
            problems.append("maxTransactionBytes: \(maxTransactionBytes) must be at least maxMessageBytes")
        }
        if maxTransactionBytes > Self.mostTransactionBytes {
            problems.append(
                "maxTransactionBytes: \(maxTransactionBytes) must be at most \(Self.mostTransactionBytes)")
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
