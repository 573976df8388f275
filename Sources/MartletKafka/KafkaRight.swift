import CRdKafka
public import MartletBus
import MartletCore

/// A right of a user of the cluster, in the terms of Kafka's own tools.
public struct KafkaRight: Sendable, Hashable, CustomStringConvertible {
    public enum Operation: String, Sendable {
        case read = "Read"
        case write = "Write"
        case create = "Create"
        case describe = "Describe"
        case describeConfigs = "DescribeConfigs"
        case idempotentWrite = "IdempotentWrite"
    }

    public enum Resource: Sendable, Hashable {
        case topic(String)
        case group(String)
        case cluster
    }

    /// Returns the consumer group in which a node's offsets are stored for lag tools. It contains the node's ID, since
    /// the node's name may change and is not unique.
    public static func group(of node: String) -> String { groupPrefix + node }

    /// The prefix of all nodes' groups.
    public static let groupPrefix = "martlet."

    public var operation: Operation
    public var resource: Resource

    public init(_ operation: Operation, _ resource: Resource) {
        self.operation = operation
        self.resource = resource
    }

    public var description: String {
        switch resource {
        case .topic(let name): "\(operation.rawValue) on topic \(name)"
        case .group(let name): "\(operation.rawValue) on group \(name)"
        case .cluster: "\(operation.rawValue) on the cluster"
        }
    }

    /// Returns the Apache Kafka command that grants the right. An administrator has to run it.
    ///
    /// - Parameters:
    ///   - principal: the user who gets the right, as Kafka names users: `User:phone`.
    ///   - bootstrapServers: the address at which the command reaches the cluster.
    public func grantCommand(to principal: String, bootstrapServers: String) -> String {
        let what =
            switch resource {
            case .topic(let name): "--topic \(ShellWord.quoted(name))"
            case .group(let name): "--group \(ShellWord.quoted(name))"
            case .cluster: "--cluster"
            }
        return "kafka-acls.sh --bootstrap-server \(ShellWord.quoted(bootstrapServers)) --add "
            + "--allow-principal \(ShellWord.quoted(principal)) "
            + "--operation \(operation.rawValue) \(what)"
    }
}

extension BusError {
    /// True if a broker recognizes the user, but says that a right is missing.
    public var isRefusedRight: Bool {
        [
            RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
            RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
        ].contains { $0.rawValue == underlyingCode }
    }
}
