public import Logging
public import MartletStore
import MartletKafka
import MartletSync

/// Syncs a program's store over Kafka for as long as the program has it open: an ``Agent`` on threads of its own.
///
/// One agent serves all programs that use a store. If another process runs one already, this one waits, and takes over
/// when that process ends.
public struct KafkaSync: StoreSync {
    /// Everything else that can be set. The store's path is filled in when sync starts.
    public var configuration: AgentConfiguration
    /// The logger of the agent.
    public var log: Logger

    public init(_ configuration: AgentConfiguration, log: Logger = Logger(label: "martlet")) {
        self.configuration = configuration
        self.log = log
    }

    /// - Throws: ``ConfigurationError`` with every problem.
    public func start(store path: String) throws -> any StoreSyncSession {
        var configuration = configuration
        configuration.storePath = path
        var problems = configuration.validate()
        if configuration.http.listen != nil {
            problems.append(
                "http.listen: works only in `martlet run`; a program that embeds the sync serves no HTTP. Leave it out")
        }
        if configuration.telemetry.isOn {
            problems.append(
                "telemetry.otlp: works only in `martlet run`; a program that embeds the sync pushes no metrics. "
                    + "Leave it out")
        }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
        return AgentSession(configuration, log: log)
    }
}

extension StoreSync where Self == KafkaSync {
    /// Syncs over a topic, which must exist.
    ///
    /// - Parameters:
    ///   - servers: the brokers to contact first, each as `host:port`.
    ///   - topic: the topic that all nodes share.
    ///   - name: the node's name for people. Nil: the host's name. Two nodes on one machine need names of their own.
    public static func kafka(_ servers: String..., topic: String, name: String? = nil) -> KafkaSync {
        var configuration = AgentConfiguration()
        configuration.kafka.bootstrapServers = servers
        configuration.kafka.topic = topic
        configuration.sync.name = name
        return KafkaSync(configuration)
    }
}
