import Foundation
import MartletExport
import MartletIngest
public import MartletKafka
import MartletSync

/// The rights that nodes need on a cluster with access control, as the tables of docs/operations.md list them.
public enum TopicRights {
    /// A group of rights, and their purpose.
    public struct Grant: Sendable {
        public var purpose: String
        public var rights: [KafkaRight]
        /// True if nodes sync without them.
        public var isOptional: Bool
    }

    /// Returns the rights for a topic and the two beside it, least first. The right to create them is left out, since
    /// `martlet topic create` does that.
    ///
    /// - Parameter node: the node's ID, for its group. Nil: no right on a group.
    public static func all(for topic: String, node: String?) -> [Grant] {
        let names = specifications(for: topic).map(\.name)
        var grants = [
            Grant(
                purpose: "what every node needs",
                rights: names.flatMap { name in
                    [KafkaRight(.read, .topic(name)), KafkaRight(.write, .topic(name))]
                }, isOptional: false),
            Grant(
                purpose: "to publish, on brokers before Kafka 2.8; later ones include it in Write",
                rights: [KafkaRight(.idempotentWrite, .cluster)], isOptional: false),
        ]
        if let node {
            grants.append(
                Grant(
                    purpose: "for lag tools, unless kafka.storeGroupOffsets is false",
                    rights: [KafkaRight(.read, .group(KafkaRight.group(of: node)))], isOptional: true))
        }
        grants.append(
            Grant(
                purpose:
                    "so that the doctor can check the topic's settings, and a node knows its message size limit",
                rights: [KafkaRight(.describeConfigs, .topic(topic))], isOptional: true))
        return grants
    }

    /// Returns the rights for exporting, on all topics whose names begin like those of the rights: tables come and go.
    public static func export(prefix: String) -> [KafkaRight] {
        [.read, .write, .create].map { KafkaRight($0, .topic("\(prefix).")) }
    }

    /// Returns the right for ingesting a topic.
    public static func ingest(topic: String) -> KafkaRight { KafkaRight(.read, .topic(topic)) }

    /// Returns the topic on which nodes agree who exports.
    static func lease(ofExport prefix: String) -> KafkaTopicSpecification { .compacted("\(prefix).export") }

    /// Returns the topics that nodes use, the one for transactions first.
    static func specifications(for topic: String) -> [KafkaTopicSpecification] {
        [KafkaTopicSpecification(name: topic, partitionCount: 1)] + KafkaTopicSpecification.beside(topic)
    }
}

/// Tries the rights of a node's user on the cluster.
enum RightsDoctor {
    /// - Parameter status: the status of the node's store. Nil: the right on its group is not tried.
    static func examine(
        _ configuration: AgentConfiguration, _ admin: KafkaAdmin, _ status: SyncStatus?, timeout: Duration
    ) throws(BusError) -> [Finding] {
        let topic = configuration.kafka.topic
        var trials: [KafkaRightTrial] = []
        for specification in TopicRights.specifications(for: topic) {
            trials += try admin.tryRights(topic: specification, timeout: timeout)
        }
        // It stands for all topics of an export: a record on another one would not go unseen.
        let lease = configuration.export.prefix.map { TopicRights.lease(ofExport: $0) }
        if let lease { trials += try admin.tryRights(topic: lease, timeout: timeout) }
        for mapping in configuration.ingest.topics {
            trials.append(try admin.tryToRead(topic: mapping.topic, timeout: timeout))
        }
        trials.append(admin.tryIdempotence(timeout: timeout))
        if configuration.kafka.storesGroupOffsets, let status, let node = status.node {
            let positions = status.partitions.filter { $0.topic == topic }.map {
                PartitionPosition(partition: $0.partition, offset: $0.next)
            }
            if !positions.isEmpty {
                trials.append(admin.tryGroup(of: node.description, positions, timeout: timeout))
            }
        }
        let granted = trials.filter { if case .granted = $0.outcome { true } else { false } }
        return trials.compactMap { judge($0, exportTopic: lease?.name) } + [
            Finding(
                check: "rights", level: .ok,
                message: granted.isEmpty
                    ? "none was granted"
                    : "tried and granted: " + granted.map(\.right.description).joined(separator: ", "))
        ]
    }

    private static func judge(_ trial: KafkaRightTrial, exportTopic: String?) -> Finding? {
        let isOfGroup = if case .group = trial.right.resource { true } else { false }
        let level = isOfGroup ? Finding.Level.warning : .problem
        var remedy = trial.remedy
        let isOfExport = trial.right.resource == exportTopic.map { KafkaRight.Resource.topic($0) }
        switch trial.right.operation {
        case _ where isOfExport: remedy += " martlet topic acls prints the rights on all topics of the export."
        case .create: remedy += " Or let a user with that right create the topic: martlet topic create makes all three."
        case .read where isOfGroup: remedy += " Or set kafka.storeGroupOffsets to false: only lag tools need it."
        default: break
        }
        switch trial.outcome {
        case .granted: return nil
        case .missing(let error):
            return Finding(
                check: "right", level: level, message: "\(trial.right) is missing: \(error.message)", remedy: remedy)
        case .unknown(let error):
            return Finding(
                check: "right", level: .warning, message: "\(trial.right) could not be tried: \(error.message)",
                remedy: error.hint.isEmpty ? nil : error.hint)
        }
    }
}
