import MartletBus

/// A topic to create.
public struct KafkaTopicSpecification: Sendable, Equatable {
    public var name: String
    /// Fixed for the life of a topic: more partitions later would move keys, and break the order within one node.
    public var partitionCount: Int
    /// Default: nil, the brokers' default (Kafka 2.4 and later).
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

    /// The topics that nodes use beside a topic.
    public static func beside(_ topic: String, replicationFactor: Int? = nil) -> [KafkaTopicSpecification] {
        [
            .checks(of: topic, replicationFactor: replicationFactor),
            .snapshots(of: topic, replicationFactor: replicationFactor),
        ]
    }

    /// The topic for snapshots of a topic: of each key, the broker keeps the newest message.
    public static func snapshots(of topic: String, replicationFactor: Int? = nil) -> KafkaTopicSpecification {
        var specification = KafkaTopicSpecification(
            name: SideTopic.snapshots(of: topic), partitionCount: 1, replicationFactor: replicationFactor)
        specification.settings["cleanup.policy"] = "compact"
        return specification
    }

    /// The topic for checks of a topic: what was said an hour ago is of no use any more.
    public static func checks(of topic: String, replicationFactor: Int? = nil) -> KafkaTopicSpecification {
        var specification = KafkaTopicSpecification(
            name: SideTopic.checks(of: topic), partitionCount: 1, replicationFactor: replicationFactor)
        specification.settings["retention.ms"] = "3600000"
        return specification
    }
}
