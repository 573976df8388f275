import Foundation
public import Logging
public import MartletAgent
import MartletStore
import MartletSync
public import ServiceLifecycle

/// Answers over HTTP how an agent does: a page at `/`, `/healthz`, `/readyz`, `/status`, `/wait` and `/metrics`.
/// docs/operations.md describes them.
///
/// Has two threads of its own. Run it in one service group with the agent, after it, so that it ends before.
public final class AgentHTTP: Service {
    /// Where it listens, with the port that it was given.
    public var address: ListenAddress { server.address }
    /// Who makes the changes that are asked for over HTTP.
    static let author = "martlet.http"
    private let server: HTTPServer
    private let log: Logger

    /// Listens, and answers from now on.
    ///
    /// - Parameters:
    ///   - agent: whose configuration says where to listen.
    ///   - registry: the one that the agent was given.
    /// - Throws: ``/MartletAgent/ConfigurationError`` where `http.listen` is not set, ``HTTPServerError`` where the
    ///   address can't be listened on.
    public convenience init(_ agent: Agent, registry: MetricsRegistry, log: Logger) throws {
        try self.init(agent: { agent }, registry: registry, log: log)
    }

    /// The same for an agent whose configuration may change. Where it listens, and with which token, stays.
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
            }, retryQuarantined: { try agent().engine.retryQuarantined() })
        let endpoints = AgentEndpoints(
            storePath: first.storePath, registry: registry, log: log, rules: rules, actions: actions,
            configuration: { agent().configuration }
        ) {
            let agent = agent()
            return AgentFacts(
                now: .now, milliseconds: WallClock.milliseconds, consumer: agent.consumer.currentProgress,
                publisher: agent.publisher.currentProgress)
        }
        server = try HTTPServer(address, rules: rules, answer: endpoints.answer)
        self.log = log
        log.info(
            "Serving HTTP",
            metadata: ["address": "\(server.address)", "token": http.token == nil ? "none" : "required"])
    }

    public func run() async throws {
        // Ends by a cancellation too, when another service has failed.
        try? await gracefulShutdown()
        stop()
    }

    /// Takes no more requests, and lets what was asked be answered. Blocks the calling thread, for about two seconds at
    /// most.
    public func stop() { server.stop() }
}
