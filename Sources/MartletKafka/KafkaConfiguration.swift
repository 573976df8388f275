/// How to reach a Kafka cluster and its topic.
///
/// Everything else that librdkafka can be told goes through ``properties``. Call ``validate()`` before use;
/// ``KafkaBus`` does, and throws what it finds.
public struct KafkaConfiguration: Sendable, Equatable {
    /// Where to ask for the cluster first, each as `host:port`. Default: `localhost:9092`.
    public var bootstrapServers = ["localhost:9092"]
    /// The topic that all nodes share. Default: `martlet`.
    public var topic = "martlet"
    /// The name of this node, which ends up in ``clientID``. Default: `node`.
    public var node = "node"
    /// The name brokers log for this client. Default: `martlet.<node>`.
    public var clientID: String?

    /// Default: plaintext.
    public var securityProtocol = KafkaSecurityProtocol.plaintext
    /// Needed when ``securityProtocol`` is one of the SASL ones.
    public var credentials: KafkaCredentials?
    public var tls = KafkaTLS()

    /// How long a message waits for others to share a batch with. It is the floor of the latency, and buys nothing for
    /// a backlog, which fills batches by itself. Default: zero.
    public var linger = Duration.zero
    /// Default: lz4.
    public var compression = KafkaCompression.lz4
    /// The largest message, key and payload together, before compression. The topic's `max.message.bytes` must allow
    /// as much. Default: 1 000 000.
    public var messageMaxBytes = 1_000_000
    /// The most that waits in the producer for an acknowledgement, besides librdkafka's limit of 100 000 messages
    /// (`queue.buffering.max.messages`). Default: 16 MiB.
    public var producerQueueBytes = 16 << 20
    /// The most that a consumer reads ahead. Default: 8 MiB.
    public var consumerQueueBytes = 8 << 20
    /// The largest payload that a consumer hands over, after decompression: of a larger one, only the beginning
    /// (``/MartletBus/IncomingMessage/cut``). Default: no limit.
    public var maxPayloadBytes = Int.max
    /// How long the broker holds a fetch that finds nothing, while a consumer catches up. It does not delay messages.
    /// Default: 500 ms.
    public var fetchWaitMax = Duration.milliseconds(500)
    /// The same for a consumer that has caught up: each fetch that finds nothing is traffic. It does not delay messages
    /// either. A partition whose leader changes may be read so much later, once, and a link that dies in silence is
    /// noticed after twice as long. Where it is not more than ``fetchWaitMax``, that holds. Default: 45 s.
    public var idleFetchWaitMax = Duration.seconds(45)
    /// How long a message may wait for its acknowledgement before it fails with `.timedOut`.
    ///
    /// Default: nil, without limit, since the store is the backlog and there is nobody to give the message back to.
    /// With a limit, a message can fail while later ones arrive: the sender must then stop and send all of them again.
    public var deliveryTimeout: Duration?
    /// Whether offsets are stored for ordinary lag tools, in the group `martlet.<UUID of the node>`. Nobody else reads
    /// them. It takes the right to read that group; where that is missing, reading goes on all the same. Default: true.
    public var storesGroupOffsets = true
    /// How often librdkafka reports its statistics as metrics. Default: zero, never.
    public var statisticsInterval = Duration.zero

    /// Any property of librdkafka, by its own name. They win over the fields above, and reach producers and consumers.
    /// Those that the guarantees of the bus rest on are refused, see ``validate()``.
    public var properties: [String: String] = [:]

    /// True where the value of this property of librdkafka must not be shown.
    public static func isSecret(property name: String) -> Bool { RDProperties.isSecret(name) }

    public init() {}

    public init(bootstrapServers: [String], topic: String = "martlet", node: String = "node") {
        self.bootstrapServers = bootstrapServers
        self.topic = topic
        self.node = node
    }
}

extension KafkaConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Names the cluster and topic. No secrets.
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
