import Foundation
import Logging
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync

/// What the agent answers over HTTP. Nothing here changes anything.
struct AgentEndpoints: Sendable {
    /// What may be asked without the token, where there is one: it says no more than whether the node is alive and ready. The page
    /// holds no data.
    static let openPaths: Set<String> = ["/", "/healthz", "/readyz"]

    private let configuration: @Sendable () -> AgentConfiguration
    private let registry: MetricsRegistry
    private let store: StoreReader
    private let facts: @Sendable () -> AgentFacts
    private let isAuthorized: @Sendable (HTTPRequest) -> Bool
    private let log: Logger

    /// - Parameters:
    ///   - isAuthorized: whether a request may know more than whether.
    ///   - configuration: the one of the moment.
    init(
        storePath: String, registry: MetricsRegistry, log: Logger,
        isAuthorized: @escaping @Sendable (HTTPRequest) -> Bool,
        configuration: @escaping @Sendable () -> AgentConfiguration, facts: @escaping @Sendable () -> AgentFacts
    ) {
        self.configuration = configuration
        self.registry = registry
        self.facts = facts
        self.isAuthorized = isAuthorized
        self.log = log
        store = StoreReader(path: storePath)
    }

    /// May block while the store is read.
    func answer(_ request: HTTPRequest) -> HTTPResponse {
        do {
            switch request.path {
            case "/": return DashboardPage.response
            case "/healthz": return .text(200, "ok")
            case "/readyz": return try ready(isAuthorized(request))
            case "/status": return try status()
            case "/activity": return .json(200, try store.activity())
            case "/metrics": return metrics()
            default: return .text(404, "There is /, /healthz, /readyz, /status, /activity and /metrics.")
            }
        } catch {
            log.warning("A request could not be answered", metadata: ["path": "\(request.path)", "error": "\(error)"])
            return .text(503, "The store can't be read: \(error)")
        }
    }

    private func readiness(_ facts: AgentFacts) -> Readiness {
        Readiness(facts, limit: configuration().http.readyLag)
    }

    private func ready(_ isAuthorized: Bool) throws -> HTTPResponse {
        let readiness = readiness(facts())
        let document = isAuthorized ? readiness.document : ["ready": readiness.isReady]
        return .json(readiness.isReady ? 200 : 503, try JSON.line(document))
    }

    private func status() throws -> HTTPResponse {
        let facts = facts()
        let readiness = readiness(facts)
        var document = try store.status().document(isRunning: true)
        document.merge(readiness.document) { $1 }
        document["progress"] =
            [
                "applied": facts.consumer.applied, "acknowledged": facts.publisher.acknowledged,
                "inFlightBytes": facts.publisher.inFlightBytes,
                "readProblem": facts.consumer.problem, "publishProblem": facts.publisher.problem,
                "lags": facts.lags.map { lag -> [String: Any?] in
                    ["partition": Int(lag.partition), "messages": lag.messages, "seconds": lag.time.inSeconds]
                },
                "snapshot": facts.consumer.snapshot.map { snapshot -> [String: Any?] in
                    [
                        "id": snapshot.id.uuidString, "maker": snapshot.makerName, "messages": snapshot.messages,
                        "messageCount": snapshot.messageCount, "rows": snapshot.rows, "finished": snapshot.isFinished,
                    ]
                },
            ] as [String: Any?]
        return .json(200, try JSON.line(document))
    }

    /// What can't be read is left out, so that the rest is seen: the absence raises an alert of its own.
    private func metrics() -> HTTPResponse {
        let facts = facts()
        var collector = AgentCollector()
        collector.add(facts, isReady: readiness(facts).isReady, topic: configuration().kafka.topic)
        do {
            collector.add(try store.status())
            collector.add(try store.sizes())
        } catch {
            log.warning("Metrics of the store are left out: it can't be read", metadata: ["error": "\(error)"])
        }
        let own = collector.families + ProcessFacts.families
        let names = Set(own.map(\.name))
        let families = (own + registry.collect().filter { !names.contains($0.name) }).sorted { $0.name < $1.name }
        return HTTPResponse(200, PrometheusText.contentType, PrometheusText.render(families))
    }
}
