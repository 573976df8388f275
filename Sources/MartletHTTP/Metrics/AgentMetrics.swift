package import Logging
package import MartletAgent
import MartletKafka
import MartletSync

/// All metrics of an agent at one moment: the one source of `/metrics` and of what is pushed.
package struct AgentMetrics: Sendable {
    private let configuration: @Sendable () -> AgentConfiguration
    private let registry: MetricsRegistry
    private let store: StoreReader
    private let facts: @Sendable () -> AgentFacts
    private let log: Logger

    init(
        _ store: StoreReader, registry: MetricsRegistry, log: Logger,
        configuration: @escaping @Sendable () -> AgentConfiguration, facts: @escaping @Sendable () -> AgentFacts
    ) {
        self.configuration = configuration
        self.registry = registry
        self.store = store
        self.facts = facts
        self.log = log
    }

    /// Reads the store on connections of its own.
    ///
    /// - Parameter registry: the one that the agent was given.
    package init(_ agent: ReloadableAgent, registry: MetricsRegistry, log: Logger) {
        self.init({ agent.current }, registry: registry, log: log)
    }

    /// The same for an agent whose configuration stays as it is.
    package init(_ agent: Agent, registry: MetricsRegistry, log: Logger) {
        self.init({ agent }, registry: registry, log: log)
    }

    private init(_ agent: @escaping @Sendable () -> Agent, registry: MetricsRegistry, log: Logger) {
        self.init(
            StoreReader(path: agent().configuration.storePath), registry: registry, log: log,
            configuration: { agent().configuration }, facts: { AgentFacts(agent()) })
    }

    /// Returns every metric, by name. May block while the store is read. Leaves out what can't be read, so that the
    /// rest is there: the absence raises an alert of its own.
    package func collect() -> [MetricFamily] {
        let facts = facts()
        let configuration = configuration()
        var collector = AgentCollector()
        let readiness = Readiness(facts, limit: configuration.http.readyLag)
        collector.add(facts, isReady: readiness.isReady, topic: configuration.kafka.topic)
        do {
            collector.add(try store.status())
            collector.add(try store.sizes())
        } catch {
            log.warning("Could not read the store; its metrics are left out", metadata: ["error": "\(error)"])
        }
        let own = collector.families + ProcessFacts.families
        let names = Set(own.map(\.name))
        return (own + registry.collect().filter { !names.contains($0.name) }).sorted { $0.name < $1.name }
    }
}
