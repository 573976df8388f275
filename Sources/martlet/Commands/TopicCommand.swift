import ArgumentParser
import Foundation
import Logging
import MartletAgent
import MartletExport
import MartletIngest
import MartletKafka
import MartletStore
import MartletSync

struct TopicCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topic", abstract: "Create or describe the topic, or print the rights that nodes need.",
        subcommands: [Create.self, Describe.self, ACLs.self])

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "create", abstract: "Create the topic and its two companion topics.",
            discussion: """
                The topic NAME holds the transactions, NAME.check the messages with which nodes compare their rows, \
                and NAME.snapshot their snapshots. A topic that already exists is left unchanged.
                """)
        @OptionGroup var kafka: KafkaOptions
        @Option(help: "Partitions of the topic itself. A node's transactions stay in order with any number of them.")
        var partitions = 1
        @Option(help: "The number of brokers that keep a copy of each partition. (default: the cluster's)")
        var replication: Int?
        @Option(
            name: .customLong("setting"),
            help: ArgumentHelp(
                "A setting of the topic itself, for example retention.ms=604800000. May be repeated.",
                valueName: "name=value")
        )
        var settings: [String] = []

        func run() throws {
            let configuration = try kafka.kafkaConfiguration()
            var topic = KafkaTopicSpecification(
                name: configuration.topic, partitionCount: partitions, replicationFactor: replication)
            for setting in settings {
                let parts = setting.split(separator: "=", maxSplits: 1)
                guard parts.count == 2 else { throw ValidationError("--setting \(setting): must be name=value") }
                topic.settings[String(parts[0])] = String(parts[1])
            }
            let admin = try KafkaAdmin(configuration, logger: makeLogger(level: .error))
            for topic in [topic] + KafkaTopicSpecification.beside(topic.name, replicationFactor: replication) {
                try create(topic, admin)
            }
        }

        private func create(_ topic: KafkaTopicSpecification, _ admin: KafkaAdmin) throws {
            do throws(BusError) {
                try admin.createTopic(topic)
                print("Topic \(topic.name) has \(Self.partitions(topic.partitionCount)).")
            } catch {
                guard error.code == .alreadyExists else { throw error }
                let found = try admin.describeTopic(topic.name).partitions.count
                guard found == topic.partitionCount else {
                    throw BusError(
                        .configuration,
                        "Topic \(topic.name) exists with \(Self.partitions(found)), not \(topic.partitionCount)",
                        hint: "Omit --partitions, set it to \(found), or choose another topic name")
                }
                print("Topic \(topic.name) already exists, and was left as it is.")
            }
        }

        private static func partitions(_ count: Int) -> String { count == 1 ? "1 partition" : "\(count) partitions" }
    }

    struct ACLs: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "acls",
            abstract: "Print the commands that grant a node its rights on a cluster with access control.",
            discussion: """
                Prints commands of Apache Kafka (kafka-acls.sh) for an administrator to run. Optional rights are \
                marked. The rights to export and to ingest come with them if export.prefix or ingest.topics are set. \
                The broker is not contacted: `martlet doctor STORE --config FILE` tests which rights a node has.
                """)
        @OptionGroup var kafka: KafkaOptions
        @Option(
            help: "The principal to grant the rights to, such as User:phone. (default: the configuration's user)"
        )
        var principal: String?
        @Option(help: "The node's store. Its node ID is part of the consumer group's name.")
        var store: String?

        func run() throws {
            let configuration = try kafka.kafkaConfiguration()
            guard let principal = principal ?? configuration.user.map({ "User:\($0)" }) else {
                throw ValidationError("--principal: name who gets the rights, for example --principal User:phone")
            }
            guard principal.allSatisfy({ $0.isASCII && !$0.isWhitespace && !"'\"\\$`;&|<>".contains($0) }) else {
                throw ValidationError("--principal \(principal): must be one word without quotes, such as User:phone")
            }
            let node = try store.map { path in
                var readOnly = StoreConfiguration()
                readOnly.isReadOnly = true
                guard let node = try SyncStatus.read(Store(path: path, configuration: readOnly)).node else {
                    throw ValidationError("--store \(path): the node has no ID yet; start its agent once")
                }
                return node.description
            }
            let servers = configuration.bootstrapServers.joined(separator: ",")
            for grant in TopicRights.all(for: configuration.topic, node: node) {
                print("# \(grant.isOptional ? "Optional: " : "")\(grant.purpose)")
                for right in grant.rights {
                    print(right.grantCommand(to: principal, bootstrapServers: servers))
                }
            }
            let topics = try kafka.configuration().ingest.topics.map(\.topic)
            if !topics.isEmpty { print("# to ingest, on the topics of ingest.topics") }
            for topic in topics {
                print(TopicRights.ingest(topic: topic).grantCommand(to: principal, bootstrapServers: servers))
            }
            if let prefix = try kafka.configuration().export.prefix {
                print("# to export, on all topics that begin with export.prefix")
                for right in TopicRights.export(prefix: prefix) {
                    print(
                        right.grantCommand(to: principal, bootstrapServers: servers)
                            + " --resource-pattern-type prefixed")
                }
            }
            guard node == nil else { return }
            print("# Optional: for lag tools, on the groups of all nodes; pass --store for the group of one node")
            print(
                KafkaRight(.read, .group(KafkaRight.groupPrefix)).grantCommand(to: principal, bootstrapServers: servers)
                    + " --resource-pattern-type prefixed")
        }
    }

    struct Describe: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "describe", abstract: "Describe the topic.")
        @OptionGroup var kafka: KafkaOptions
        @OptionGroup var output: JSONFlag

        func run() throws {
            let topic = try KafkaAdmin(kafka.kafkaConfiguration(), logger: makeLogger(level: .error)).describeTopic()
            if output.json {
                try JSON.print([
                    "topic": topic.name, "settings": topic.settings,
                    "partitions": topic.partitions.map {
                        [
                            "partition": Int($0.id), "leader": Int($0.leader), "replicas": $0.replicas.map { Int($0) },
                            "low": $0.watermarks?.low, "high": $0.watermarks?.high,
                        ] as [String: Any?]
                    },
                ])
                return
            }
            print("topic \(topic.name)")
            for partition in topic.partitions {
                let marks = partition.watermarks.map { "offsets \($0.low) to \($0.high)" } ?? "offsets unknown"
                print(
                    "  partition \(partition.id): leader \(partition.leader), replicas \(partition.replicas), \(marks)")
            }
            for (name, value) in (topic.settings ?? [:]).sorted(by: { $0.key < $1.key }) { print("  \(name)=\(value)") }
        }
    }
}
