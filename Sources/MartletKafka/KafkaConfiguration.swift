/// The settings to reach a Kafka cluster and its topic.
///
/// All other librdkafka settings go through ``properties``. Call ``validate()`` before use; ``KafkaBus`` does, and
/// throws the problems that it finds.
public struct KafkaConfiguration: Sendable, Equatable {
    /// The initial brokers, each as `host:port`. Default: `localhost:9092`.
    public var bootstrapServers = ["localhost:9092"]
    /// The topic that all nodes share. Default: `martlet`.
    public var topic = "martlet"
    /// The name of this node, which becomes part of ``clientID``. Default: `node`.
    public var node = "node"
    /// The name that brokers log for this client. Default: `martlet.<node>`.
    public var clientID: String?

    /// Default: plaintext.
    public var securityProtocol = KafkaSecurityProtocol.plaintext
    /// Required if ``securityProtocol`` is one of the SASL protocols.
    public var credentials: KafkaCredentials?
    public var tls = KafkaTLS()

    /// How long a message waits for others to share a batch with. It adds to the latency of every message, and gains
    /// nothing for a backlog, which fills batches anyway. Default: zero.
    public var linger = Duration.zero
    /// Default: lz4.
    public var compression = KafkaCompression.lz4
    /// The maximum size of a message, key and payload together, in bytes before compression. The topic's
    /// `max.message.bytes` must allow as much. Default: 1 000 000.
    public var messageMaxBytes = 1_000_000
    /// The maximum size of all messages in the producer that wait for an acknowledgement, in bytes. librdkafka's limit
    /// of 100 000 messages (`queue.buffering.max.messages`) applies as well. Default: 16 MiB.
    public var producerQueueBytes = 16 << 20
    /// How much a consumer reads ahead, in bytes. Default: 8 MiB.
    public var consumerQueueBytes = 8 << 20
    /// The maximum payload that a consumer returns, in bytes after decompression. Of a larger payload, it returns only
    /// the beginning (``/MartletBus/IncomingMessage/cut``). Default: no limit.
    public var maxPayloadBytes = Int.max
    /// How long the broker holds a fetch that finds nothing, while a consumer is catching up. This does not delay
    /// messages. Default: 500 ms.
    public var fetchWaitMax = Duration.milliseconds(500)
    /// How long the broker holds a fetch that finds nothing, once a consumer has caught up. A longer wait saves
    /// traffic, and does not delay messages. But after a change of leader, a partition may once be read later by this
    /// long, and a connection that dies silently is noticed only after twice this time. If this is not more than
    /// ``fetchWaitMax``, that one applies. Default: 45 s.
    public var idleFetchWaitMax = Duration.seconds(45)
    /// How long a message may wait for its acknowledgement before it fails with `.timedOut`.
    ///
    /// Default: nil, no limit, since the store is the backlog and there is no one to return the message to. With a
    /// limit, a message can fail while later ones arrive: the sender must then stop and resend all of them.
    public var deliveryTimeout: Duration?
    /// Whether offsets are stored for ordinary lag tools, in the group `martlet.<UUID of the node>`. Nothing else reads
    /// them. This needs the right to read that group; without it, reading continues all the same. Default: true.
    public var storesGroupOffsets = true
    /// How often librdkafka reports its statistics as metrics. Default: zero, never.
    public var statisticsInterval = Duration.zero

    /// Any librdkafka properties, by their own names. They override the fields above, and apply to producers and
    /// consumers. Properties that the guarantees of the bus depend on are rejected, see ``validate()``.
    public var properties: [String: String] = [:]

    /// Returns whether the value of this librdkafka property must not be shown.
    public static func isSecret(property name: String) -> Bool { RDProperties.isSecret(name) }

    public init() {}

    public init(bootstrapServers: [String], topic: String = "martlet", node: String = "node") {
        self.bootstrapServers = bootstrapServers
        self.topic = topic
        self.node = node
    }
}

extension KafkaConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The cluster and topic, without secrets.
    public var description: String {
        "KafkaConfiguration(\(bootstrapServers.joined(separator: ",")), topic: \(topic), node: \(node), "
            + "\(securityProtocol.rawValue), properties: \(printableProperties))"
    }

    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }

    private var printableProperties: [String: String] {
        Dictionary(
            uniqueKeysWithValues: properties.map { ($0, RDProperties.isSecret($0) ? "***" : $1) }
        )
    }
}
