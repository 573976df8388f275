import ArgumentParser
import Foundation
import Logging
import MartletAgent
import MartletHTTP
import MartletKafka
import MartletSync
import MartletTelemetry
import ServiceLifecycle
import UnixSignals

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Keep a store in sync with the topic, until stopped (SIGTERM or Ctrl-C).",
        discussion: """
            The topic must exist: create it with `martlet topic create`. Settings come from flags or from a \
            configuration file. On a terminal, a progress bar is shown while there is a lot to read.
            """)

    @Option(help: "The store: an SQLite file.", completion: .file())
    var store: String?
    @Option(help: "The node's display name. (default: the host name)")
    var name: String?
    @Option(help: "Log level: trace, debug, info, notice, warning, error or critical. (default: info)")
    var logLevel: String?
    @Option(
        help: ArgumentHelp(
            "Serve HTTP here: /, /healthz, /readyz, /status, /metrics. (default: nowhere)", valueName: "host:port"))
    var http: String?

    @OptionGroup var kafka: KafkaOptions

    func run() async throws {
        StopSignals.endTheProcess()
        // Before anything that could take a while: the signal ends programs that don't handle it.
        let hangups = kafka.config == nil ? nil : await UnixSignalsSequence(trapping: .sighup)
        let configuration = try configuration()
        let line = StatusLine(configuration.logFormat)
        let log = makeLogger(level: configuration.logLevel, format: configuration.logFormat, above: line)
        let registry = MetricsRegistry()
        let agent = try ReloadableAgent(configuration, log: log, metrics: registry)
        var services: [ServiceGroupConfiguration.ServiceConfiguration] = []
        // The first service is the last to stop: the last push has what the agent did until its end.
        if configuration.telemetry.isOn {
            services.append(.init(service: MetricsPusher(agent, registry: registry, log: log)))
        }
        services.append(.init(service: agent))
        if let hangups {
            services.append(
                .init(
                    service: Reloader(signals: hangups, agent: agent, log: log, configuration: self.configuration),
                    successTerminationBehavior: .gracefullyShutdownGroup))
        }
        if let line { services.append(.init(service: CatchUpDisplay(line: line, agent: agent))) }
        services.append(.init(service: IdleMemory(agent: agent)))
        // The last service is the first to stop.
        if configuration.http.listen != nil {
            services.append(.init(service: try AgentHTTP(agent, registry: registry, log: log)))
        }
        let group = ServiceGroup(
            configuration: .init(services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: log))
        try await group.run()
    }

    /// Combines the present values of the file, the environment and the flags.
    private func configuration() throws -> AgentConfiguration {
        var configuration = try kafka.configuration()
        if let http { configuration.http.listen = http }
        if let store { configuration.storePath = store }
        if let name { configuration.sync.name = name }
        if let logLevel {
            guard let level = Logger.Level(rawValue: logLevel) else {
                throw ValidationError(
                    """
                    --log-level \(logLevel): must be one of \
                    \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))
                    """
                )
            }
            configuration.logLevel = level
        }
        return configuration
    }
}

/// Reloads the configuration file at each SIGHUP.
private struct Reloader: Service {
    let signals: UnixSignalsSequence
    let agent: ReloadableAgent
    let log: Logger
    let configuration: @Sendable () throws -> AgentConfiguration
    /// A terminal that is closed sends the same signal.
    private let isAtTerminal = isatty(STDIN_FILENO) == 1

    init(
        signals: UnixSignalsSequence, agent: ReloadableAgent, log: Logger,
        configuration: @escaping @Sendable () throws -> AgentConfiguration
    ) {
        self.signals = signals
        self.agent = agent
        self.log = log
        self.configuration = configuration
    }

    /// Ends when the terminal is closed.
    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
            if isAtTerminal, isatty(STDIN_FILENO) == 0 { return }
            log.notice("Rereading the configuration")
            do {
                guard try agent.reload(configuration()) else {
                    log.notice("Configuration unchanged")
                    continue
                }
                log.notice("Configuration changed; restarting the agent with it")
            } catch {
                log.error(
                    "Configuration invalid, rejected as a whole; keeping the current one",
                    metadata: ["error": "\(error)"])
            }
        }
    }
}

struct BrokerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "broker", abstract: "Run a small Kafka broker in the foreground, for development.",
        discussion: """
            Listens on the loopback interface, and keeps everything in memory (5 MB per partition): all data is gone \
            when it stops.
            """)

    @Option(help: "The port. 0 picks a free one.")
    var port: UInt16 = 9092
    @Option(
        name: .customLong("topic"),
        help: ArgumentHelp("A topic to create. May be repeated. (default: martlet=1)", valueName: "name=partitions"))
    var topics: [String] = []

    func run() async throws {
        var wanted: [String: Int] = [:]
        for topic in topics.isEmpty ? ["martlet=1"] : topics {
            let parts = topic.split(separator: "=")
            guard let name = parts.first, let count = parts.count == 1 ? 1 : Int(parts[1]), count > 0 else {
                throw ValidationError("--topic \(topic): must be name or name=partitions")
            }
            wanted[String(name)] = count
        }
        let broker = try EmbeddedBroker(port: port, topics: wanted, logger: makeLogger(level: .warning))
        print("listening on \(broker.bootstrapServers.joined(separator: ","))")
        fflush(nil)
        try await Waiting.untilStopped()
        withExtendedLifetime(broker) {}
    }
}
