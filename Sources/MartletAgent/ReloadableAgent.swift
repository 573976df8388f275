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
        var cycle: ReloadCycle
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
        let agent = try Self.agent(configuration, log, metrics, lock: nil)
        state = Mutex(State(agent: agent, cycle: ReloadCycle(agent.configuration, files: files)))
    }

    /// The agent that runs, or the last one that did. Each reload replaces it.
    public var current: Agent { state.withLock { $0.agent } }

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
            let (isNew, action) = try state.cycle.want(checked, files: files)
            if action == .stop { state.agent.stop() }
            return isNew
        }
    }

    public func run() async throws {
        // All agents have the same lock. Otherwise, a process that waits for its turn could take the store between two
        // of them, and this one would end.
        defer { current.lock.release() }
        var action = ReloadCycle.Action.run
        while action != .end { action = try await perform(action) }
    }

    private func perform(_ action: ReloadCycle.Action) async throws -> ReloadCycle.Action {
        switch action {
        case .run, .runStopped:
            let agent = current
            if action == .runStopped { agent.stop() }
            try await agent.run(keepsLock: true)
            let isOver = Self.isOver
            return state.withLock { $0.cycle.noteEnded(isOver: isOver) }
        case .open(let wanted, let former):
            guard let agent = try await follow(former, wanted) else { return .end }
            return state.withLock { state in
                state.agent = agent
                return state.cycle.noteOpened(agent.configuration)
            }
        case .stop, .end: return .end
        }
    }

    /// Returns true if the program stops.
    private static var isOver: Bool { Task.isCancelled || Task.isShuttingDownGracefully }

    /// Makes the next agent: with the former configuration if the store can't be opened with the new one.
    ///
    /// - Returns: nil if the program stops before.
    private func follow(_ old: AgentConfiguration, _ new: AgentConfiguration) async throws -> Agent? {
        do {
            guard let agent = try await makeAgent(new) else { return nil }
            log.notice("Agent restarted with the new configuration")
            return agent
        } catch {
            log.error(
                "New configuration rejected; keeping the previous one",
                metadata: ["error": "\(error)"])
            return try await makeAgent(old)
        }
    }

    /// Makes an agent as soon as no other program keeps the store locked, and the disk is not full. That says nothing
    /// about the configuration, and nobody else would start an agent again.
    ///
    /// - Returns: nil if the program stops before.
    private func makeAgent(_ configuration: AgentConfiguration) async throws -> Agent? {
        var backoff = Backoff(to: .seconds(1))
        while !Self.isOver {
            do {
                return try Self.agent(configuration, log, metrics, lock: current.lock)
            } catch let error as StoreError where error.isTransient {
                log.warning("Could not read the store; will retry", metadata: ["error": "\(error)"])
            }
            // Ends early by cancellation alone, which the loop notices.
            try? await Task.sleep(for: backoff.fail())
        }
        return nil
    }

    private static func agent(
        _ configuration: AgentConfiguration, _ log: Logger, _ metrics: any MetricsFactory, lock: StoreLock?
    ) throws -> Agent {
        var log = log
        log.logLevel = configuration.logLevel
        return try Agent(configuration, log: log, metrics: metrics, lock: lock)
    }
}
