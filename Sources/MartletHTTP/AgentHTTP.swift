import Foundation
public import Logging
public import MartletAgent
import MartletStore
import MartletSync
public import ServiceLifecycle

/// Serves the state of an agent over HTTP: a page at `/`, `/healthz`, `/readyz`, `/status`, `/wait`, `/changes` and
/// `/metrics`. docs/operations.md describes them.
///
/// Has three threads of its own, one more while a request changes something, and one more while there are streams of
/// changes. Run it in one service group with the agent, and after it, so that it ends first.
public final class AgentHTTP: Service {
    /// The address that it listens on, with the assigned port.
    public var address: ListenAddress { server.address }
    /// The author of the changes that are requested over HTTP.
    package static let author = "martlet.http"
    private let server: HTTPServer

    /// Listens, and answers requests from now on.
    ///
    /// - Parameters:
    ///   - agent: its configuration has the address.
    ///   - registry: the one that the agent was given.
    /// - Throws: ``/MartletAgent/ConfigurationError`` if `http.listen` is not set, ``HTTPServerError`` if the address
    ///   can't be listened on.
    public convenience init(_ agent: Agent, registry: MetricsRegistry, log: Logger) throws {
        try self.init(agent: { agent }, registry: registry, log: log)
    }

    /// The same for an agent whose configuration may change. The address and the token stay as they are.
    public convenience init(_ agent: ReloadableAgent, registry: MetricsRegistry, log: Logger) throws {
        try self.init(agent: { agent.current }, registry: registry, log: log)
    }

    private init(agent: @escaping @Sendable () -> Agent, registry: MetricsRegistry, log: Logger) throws {
        let first = agent().configuration
        let http = first.http
        guard let address = http.address else {
            throw ConfigurationError(problems: ["http.listen: is not set"])
        }
        let rules = RequestGuard(
            address, token: http.token, openPaths: AgentEndpoints.openPaths, isChange: AgentEndpoints.isChange)
        let actions = AgentActions(
            reapply: { id in
                let configuration = agent().configuration
                let store = try Store(path: configuration.storePath, configuration: configuration.store)
                defer { try? store.close() }
                try store.reapplyConflict(id, author: Self.author)
            }, retryQuarantined: { try agent().retryQuarantined() })
        let endpoints = AgentEndpoints(
            storePath: first.storePath, registry: registry, log: log, rules: rules, actions: actions,
            configuration: { agent().configuration }, facts: { AgentFacts(agent()) })
        server = try HTTPServer(address, rules: rules, isQuick: AgentEndpoints.isQuick, answer: endpoints.answer)
        log.info(
            "Serving HTTP",
            metadata: ["address": "\(server.address)", "token": http.token == nil ? "none" : "required"])
    }

    public func run() async throws {
        // Also ends by cancellation, when another service has failed.
        try? await gracefulShutdown()
        stop()
    }

    /// Accepts no more requests, and lets those in progress be answered. Blocks the calling thread, for about two
    /// seconds at most.
    public func stop() { server.stop() }
}
