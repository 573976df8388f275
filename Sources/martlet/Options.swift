import ArgumentParser
import Foundation
import Logging
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync

/// The store that a command works on.
struct StoreArgument: ParsableArguments {
    @Argument(help: "The store: an SQLite file.", completion: .file())
    var store: String

    /// - Parameter busyTimeout: nil: the default.
    func open(readOnly: Bool = false, busyTimeout: Duration? = nil) throws -> Store {
        var configuration = StoreConfiguration()
        configuration.isReadOnly = readOnly
        if let busyTimeout { configuration.busyTimeout = busyTimeout }
        return try Store(path: store, configuration: configuration)
    }
}

struct JSONFlag: ParsableArguments {
    @Flag(help: "Print JSON, for programs.")
    var json = false
}

extension AgentConfiguration {
    /// Reads a configuration file. Nil gives the defaults.
    init(file: String?) throws {
        guard let file else {
            self.init()
            return
        }
        let text: String
        do {
            text = try String(contentsOfFile: file, encoding: .utf8)
        } catch {
            throw ValidationError("The configuration file \(file) can't be read.")
        }
        try self.init(yaml: text, readFile: { try String(contentsOfFile: $0, encoding: .utf8) })
    }
}

/// The configuration of an agent that is not running.
struct StoppedAgentOptions: ParsableArguments {
    @Option(
        help: "Used by retries only: the agent's configuration file (YAML), if it has one.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    func configuration() throws -> AgentConfiguration {
        try AgentConfiguration(file: config)
    }
}

/// How to reach the broker.
struct KafkaOptions: ParsableArguments {
    @Option(help: "Brokers to contact first: host:port, comma-separated.")
    var bootstrapServers: String?

    @Option(help: "The topic that the nodes sync through. (default: martlet)")
    var topic: String?

    @Option(help: "A configuration file (YAML). Flags override it.", completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @Option(help: ArgumentHelp("Any librdkafka property. May be repeated.", valueName: "name=value"))
    var kafka: [String] = []

    /// Combines the configuration file's settings, the environment and the flags.
    func configuration() throws -> AgentConfiguration {
        var configuration = try AgentConfiguration(file: config)
        configuration.readEnvironment(ProcessInfo.processInfo.environment)
        if let bootstrapServers {
            configuration.kafka.bootstrapServers = bootstrapServers.split(separator: ",").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
        }
        if let topic { configuration.kafka.topic = topic }
        for setting in kafka {
            guard let equal = setting.firstIndex(of: "=") else {
                throw ValidationError("--kafka \(setting): must be name=value")
            }
            let name = String(setting[..<equal])
            guard !KafkaConfiguration.isSecret(property: name.lowercased()) else {
                throw ValidationError(
                    """
                    --kafka \(name): every user of this machine could read this secret in the process list. Put it \
                    into the configuration file (kafka.sasl.passwordFile, kafka.properties).
                    """
                )
            }
            configuration.kafka.properties[name] = String(setting[setting.index(after: equal)...])
        }
        return configuration
    }

    /// The same. A broker is required.
    func configurationWithBroker() throws -> AgentConfiguration {
        let configuration = try configuration()
        guard !configuration.kafka.bootstrapServers.isEmpty else {
            throw ValidationError("No broker given: pass --bootstrap-servers host:port or --config FILE.")
        }
        return configuration
    }

    /// The same for commands that need only the broker.
    func kafkaConfiguration() throws -> KafkaConfiguration {
        let configuration = try configurationWithBroker()
        let unreadable = configuration.unreadableFiles
        guard unreadable.isEmpty else { throw ConfigurationError(problems: unreadable) }
        return configuration.kafka
    }
}

/// Makes a logger that writes to standard error, so that standard output is for results.
func makeLogger(
    _ label: String = "martlet", level: Logger.Level, format: AgentConfiguration.LogFormat = .text,
    above line: StatusLine? = nil
) -> Logger {
    var logger = Logger(label: label) { label -> any LogHandler in
        guard format == .text else { return RepetitionLogHandler(JSONLogHandler(label: label)) }
        let handler = RepetitionLogHandler(EscapingLogHandler(StreamLogHandler.standardError(label: label)))
        guard let line else { return handler }
        return StatusLineLogHandler(handler: handler, line: line)
    }
    logger.logLevel = level
    return logger
}

/// Writes one JSON object a line.
struct JSONLogHandler: LogHandler {
    let label: String
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var object: [String: Any?] = [
            "time": JSON.date(Date()), "level": event.level.rawValue, "message": "\(event.message)", "label": label,
        ]
        for (key, value) in metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 }) {
            object[key] = "\(value)"
        }
        guard let line = try? JSON.line(object) else { return }
        ErrorOutput.write(line + "\n")
    }
}
