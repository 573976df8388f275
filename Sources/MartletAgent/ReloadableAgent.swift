public import Logging
import MartletStore
public import Metrics
public import ServiceLifecycle
import Synchronization

/// An agent whose configuration can be replaced while the program runs.
///
/// The previous agent stops as at a shutdown, and one with the new configuration continues: work in flight is finished
/// within five seconds, or repeated. Transactions that other programs write meanwhile are published afterwards.
public final class ReloadableAgent: Service {
    private struct State {
        var agent: Agent
        /// The last accepted configuration, even if its agent does not run yet.
        var wanted: AgentConfiguration
        /// The files that it names, as they were when it was accepted.
        var files: [String: SecretFile.Version]
        /// True if the running agent has to stop for one with the wanted configuration.
        var isDue = false
    }

    private let state: Mutex<State>
    private let log: Logger
    private let metrics: any MetricsFactory

    /// Opens the store and takes its lock. Connects to nothing yet.
    ///
    /// - Parameter log: used with the level of each configuration.
    /// - Throws: the same errors as ``Agent/init(_:log:metrics:)``.
    public init(
        _ configuration: AgentConfiguration, log: Logger, metrics: any MetricsFactory = MetricsSystem.factory
    ) throws {
        self.log = log
        self.metrics = metrics
        let files = configuration.fileVersions
        let agent = try Self.agent(configuration, log, metrics)
        state = Mutex(State(agent: agent, wanted: agent.configuration, files: files))
    }

    /// The agent that runs, or the last one that did. Each reload replaces it.
    public var current: Agent { state.withLock { $0.agent } }

    /// Returns the configuration keys with changes that need a restart of the program.
    private static func fixed(_ old: AgentConfiguration, _ new: AgentConfiguration) -> [String] {
        var fixed: [String] = []
        if new.storePath != old.storePath { fixed.append("store.path") }
        if new.http.listen != old.http.listen { fixed.append("http.listen") }
        if new.http.token != old.http.token { fixed.append("http.tokenFile") }
        if new.logFormat != old.logFormat { fixed.append("log.format") }
        return fixed
    }

    /// Checks a configuration, and applies it as soon as the running agent has finished its work in flight. Callable
    /// from any thread. Does not wait for that.
    ///
    /// Certificates and private keys that were renewed under the same names count as a change. Key rings are reread by
    /// themselves, and need no reload.
    /// - Returns: false if nothing differs: the agent then continues undisturbed.
    /// - Throws: ``ConfigurationError`` if a value is wrong or needs a restart, and the same errors as
    ///   ``Agent/init(_:log:metrics:)``. Nothing has changed then.
    public func reload(_ configuration: AgentConfiguration) throws -> Bool {
        let files = configuration.fileVersions
        let checked = try Agent.check(configuration, log: log)
        return try state.withLock { state in
            let fixed = Self.fixed(state.wanted, checked)
            guard fixed.isEmpty else {
                throw ConfigurationError(
                    problems: fixed.map { "\($0): has changed; restart the agent to apply that" })
            }
            guard checked != state.wanted || files != state.files else { return false }
            state.wanted = checked
            state.files = files
            state.isDue = true
            state.agent.stop()
            return true
        }
    }

    public func run() async throws {
        while true {
            let agent = current
            try await agent.run()
            let next: AgentConfiguration? = state.withLock { state in
                defer { state.isDue = false }
                return state.isDue ? state.wanted : nil
            }
            guard let next else { return }
            let following = try follow(agent.configuration, next)
            state.withLock { state in
                state.agent = following
                // Another configuration may have arrived meanwhile.
                if state.isDue { following.stop() } else { state.wanted = following.configuration }
            }
        }
    }

    /// Makes the next agent: with the former configuration if the store can't be opened with the new one.
    private func follow(_ old: AgentConfiguration, _ new: AgentConfiguration) throws -> Agent {
        do {
            let agent = try Self.agent(new, log, metrics)
            log.notice("Agent restarted with the new configuration")
            return agent
        } catch {
            log.error(
                "New configuration rejected; keeping the previous one",
                metadata: ["error": "\(error)"])
            return try Self.agent(old, log, metrics)
        }
    }

    private static func agent(
        _ configuration: AgentConfiguration, _ log: Logger, _ metrics: any MetricsFactory
    ) throws -> Agent {
        var log = log
        log.logLevel = configuration.logLevel
        return try Agent(configuration, log: log, metrics: metrics)
    }
}
