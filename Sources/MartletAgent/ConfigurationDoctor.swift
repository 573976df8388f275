/// Examines the values of a configuration.
public enum ConfigurationDoctor {
    /// Returns the problems with which the agent doesn't start. Leaves out the files that it can't read, which
    /// ``BrokerDoctor`` reports, and the telemetry.
    ///
    /// - Parameter path: The store, which the configuration need not name.
    public static func examine(_ configuration: AgentConfiguration, store path: String) -> [Finding] {
        var configuration = configuration
        configuration.storePath = path
        do throws(ConfigurationError) {
            _ = try Agent.complete(configuration)
            return []
        } catch {
            let others = configuration.unreadableFiles + configuration.telemetry.validate()
            return error.problems.filter { !others.contains($0) }.map {
                Finding(
                    check: "configuration", level: .problem, message: $0,
                    remedy: "Correct it: the agent does not start with it.")
            }
        }
    }
}
