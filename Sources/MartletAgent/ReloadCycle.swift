/// Which configuration an agent that can be reloaded has, which one it shall have, and what follows from each event.
/// Pure: it neither opens a store nor waits.
///
/// Each accepted configuration runs, or is replaced by a later one before it runs. None is lost, whenever it comes.
package struct ReloadCycle {
    package enum State: Equatable {
        /// The agent runs with the wanted configuration, or is about to.
        case running
        /// The agent was told to stop, for another one with the wanted configuration.
        case stopping
        /// The next agent is being made.
        ///
        /// - isStale: true if a further configuration has been accepted meanwhile.
        case opening(isStale: Bool)
        /// No agent follows.
        case ended
    }

    package enum Action: Equatable, Sendable {
        /// Tell the running agent to stop.
        case stop
        /// Make an agent with the first configuration; with the second one, if the store refuses the first.
        case open(AgentConfiguration, orElse: AgentConfiguration)
        /// Run the agent that was made.
        case run
        /// Run the agent that was made after telling it to stop: it releases the store.
        case runStopped
        case end
    }

    package private(set) var state = State.running
    /// The last accepted configuration, even if its agent does not run yet.
    package private(set) var wanted: AgentConfiguration
    /// The files that it names, as they were when it was accepted.
    private var files: [String: SecretFile.Version]
    /// The configuration of the agent that runs, or of the last one that did.
    private var present: AgentConfiguration

    package init(_ configuration: AgentConfiguration, files: [String: SecretFile.Version]) {
        wanted = configuration
        present = configuration
        self.files = files
    }

    // MARK: Events

    /// A valid configuration is wanted from now on.
    ///
    /// - Returns: what to do; nil if the next agent gets it without further ado.
    /// - Throws: ``ConfigurationError`` if it differs in a value that needs a restart of the program. Nothing has
    ///   changed then.
    package mutating func want(
        _ configuration: AgentConfiguration, files: [String: SecretFile.Version]
    ) throws(ConfigurationError) -> (isNew: Bool, action: Action?) {
        let fixed = Self.fixed(wanted, configuration)
        guard fixed.isEmpty else {
            throw ConfigurationError(problems: fixed.map { "\($0): has changed; restart the agent to apply that" })
        }
        guard configuration != wanted || files != self.files else { return (false, nil) }
        wanted = configuration
        self.files = files
        switch state {
        case .running:
            state = .stopping
            return (true, .stop)
        case .opening: state = .opening(isStale: true)
        case .stopping, .ended: break
        }
        return (true, nil)
    }

    /// The agent has ended without an error.
    ///
    /// - Parameter isOver: true if the program stops. An agent with a wanted configuration would only open the store,
    ///   to be stopped.
    package mutating func noteEnded(isOver: Bool) -> Action {
        guard state == .stopping, !isOver else {
            state = .ended
            return .end
        }
        state = .opening(isStale: false)
        return .open(wanted, orElse: present)
    }

    /// An agent with this configuration was made.
    package mutating func noteOpened(_ configuration: AgentConfiguration) -> Action {
        present = configuration
        guard state != .opening(isStale: true) else {
            state = .stopping
            return .runStopped
        }
        // If the store has refused the wanted configuration, that one is given up.
        wanted = configuration
        state = .running
        return .run
    }

    /// Returns the configuration keys with changes that need a restart of the program.
    private static func fixed(_ old: AgentConfiguration, _ new: AgentConfiguration) -> [String] {
        var fixed: [String] = []
        if new.storePath != old.storePath { fixed.append("store.path") }
        if new.http.listen != old.http.listen { fixed.append("http.listen") }
        if new.http.token != old.http.token { fixed.append("http.tokenFile") }
        // The rest of it is read before each push.
        if new.telemetry.isOn != old.telemetry.isOn { fixed.append("telemetry.otlp.endpoint") }
        if new.logFormat != old.logFormat { fixed.append("log.format") }
        return fixed
    }
}
