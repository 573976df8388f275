import MartletBus

/// A topic to create.
public struct KafkaTopicSpecification: Sendable, Equatable {
    public var name: String
    /// The number of partitions. Don't change it later: more partitions would move keys, and break the order of a
    /// node's messages.
    public var partitionCount: Int
    /// The number of replicas. Default: nil, the brokers' default (Kafka 2.4 and later).
    public var replicationFactor: Int?
    /// The topic's settings, by Kafka's own names (`retention.ms`, `min.insync.replicas`, ...).
    ///
    /// Default: timestamps of arrival, which show at a glance how late a message is, and `cleanup.policy=delete`, since
    /// compaction would keep only the last transaction of each node.
    public var settings = ["message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"]

    public init(name: String, partitionCount: Int, replicationFactor: Int? = nil) {
        self.name = name
        self.partitionCount = partitionCount
        self.replicationFactor = replicationFactor
    }

    /// Returns the topics that nodes use besides the given one: for checks and for snapshots.
    public static func beside(_ topic: String, replicationFactor: Int? = nil) -> [KafkaTopicSpecification] {
        [
            .checks(of: topic, replicationFactor: replicationFactor),
            .snapshots(of: topic, replicationFactor: replicationFactor),
        ]
    }

    /// Returns the topic for a topic's snapshots. It is compacted: the broker keeps the newest message of each key.
    public static func snapshots(of topic: String, replicationFactor: Int? = nil) -> KafkaTopicSpecification {
        var specification = KafkaTopicSpecification(
            name: SideTopic.snapshots(of: topic), partitionCount: 1, replicationFactor: replicationFactor)
        specification.settings["cleanup.policy"] = "compact"
        return specification
    }

    /// Returns a topic of which the broker keeps the newest message of each key.
    public static func compacted(
        _ name: String, partitionCount: Int = 1, replicationFactor: Int? = nil
    ) -> KafkaTopicSpecification {
        var specification = KafkaTopicSpecification(
            name: name, partitionCount: partitionCount, replicationFactor: replicationFactor)
        specification.settings["cleanup.policy"] = "compact"
        return specification
    }

    /// Returns the topic for a topic's anti-entropy checks. Its messages are kept for one hour; older ones are of no
    /// use.
    public static func checks(of topic: String, replicationFactor: Int? = nil) -> KafkaTopicSpecification {
        var specification = KafkaTopicSpecification(
            name: SideTopic.checks(of: topic), partitionCount: 1, replicationFactor: replicationFactor)
        specification.settings["retention.ms"] = "3600000"
        return specification
    }
}
