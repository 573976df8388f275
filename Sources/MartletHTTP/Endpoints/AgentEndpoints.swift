import Foundation
package import Logging
package import MartletAgent
import MartletKafka
import MartletStore
package import MartletSync

/// The requests to an agent that change something. Each may block.
package struct AgentActions: Sendable {
    /// Sets a column to the value that a conflict overruled.
    var reapply: @Sendable (Int64) throws -> Void
    var retryQuarantined: @Sendable () throws -> QuarantineRetryReport

    package init(
        reapply: @escaping @Sendable (Int64) throws -> Void,
        retryQuarantined: @escaping @Sendable () throws -> QuarantineRetryReport
    ) {
        self.reapply = reapply
        self.retryQuarantined = retryQuarantined
    }

    /// Does nothing.
    package static let none = AgentActions(reapply: { _ in }, retryQuarantined: { QuarantineRetryReport() })
}

/// The endpoints that the agent serves over HTTP.
package struct AgentEndpoints: Sendable {
    /// The paths that are served without the token, if there is one: they tell only whether the node is alive and
    /// ready. The page holds no data.
    package static let openPaths: Set<String> = ["/", "/healthz", "/readyz"]

    /// Returns true if the answer comes from memory. Probes don't wait for those that read the store.
    static func isQuick(_ request: HTTPRequest) -> Bool { openPaths.contains(String(request.path)) }

    private let configuration: @Sendable () -> AgentConfiguration
    private let metrics: AgentMetrics
    private let store: StoreReader
    private let digests: DigestKeeper
    private let waits: WaitKeeper
    private let changes: ChangeStreams
    private let facts: @Sendable () -> AgentFacts
    private let rules: RequestGuard
    private let actions: AgentActions
    private let log: Logger

    /// - Parameters:
    ///   - rules: decides who may see values, and why the node is not ready.
    ///   - configuration: returns the present configuration.
    package init(
        storePath: String, registry: MetricsRegistry, log: Logger, rules: RequestGuard, actions: AgentActions,
        configuration: @escaping @Sendable () -> AgentConfiguration, facts: @escaping @Sendable () -> AgentFacts
    ) {
        self.configuration = configuration
        self.facts = facts
        self.rules = rules
        self.actions = actions
        self.log = log
        let store = StoreReader(path: storePath)
        self.store = store
        metrics = AgentMetrics(store, registry: registry, log: log, configuration: configuration, facts: facts)
        digests = DigestKeeper(path: storePath)
        let places = RequestPlaces()
        waits = WaitKeeper(path: storePath, places: places)
        changes = ChangeStreams(path: storePath, waiting: places, log: log)
    }

    /// May block while the store is read. So may the closure that it returns.
    package func answer(_ request: HTTPRequest) -> HTTPAnswer {
        if request.path == "/changes", request.method != "POST" { return stream(request) }
        guard request.path == "/wait", request.method != "POST" else { return .now(respond(request)) }
        do {
            guard let wait = try waits.begin(request) else {
                return .now(
                    .text(
                        503,
                        "\(WaitKeeper.most) requests wait or stream already. Try again, or wait with `martlet wait`.",
                        headers: ["Retry-After": "1"]))
            }
            return .later {
                do {
                    return try wait.look()
                } catch {
                    return refusal(error, request)
                }
            }
        } catch {
            return .now(refusal(error, request))
        }
    }

    /// Begins a stream of changes, which contain values.
    private func stream(_ request: HTTPRequest) -> HTTPAnswer {
        guard rules.isIdentified(request) else {
            return .now(.text(403, "Changes contain values of rows, so they need a token: set http.tokenFile."))
        }
        guard configuration().http.showsValues else {
            return .now(.text(403, "Changes contain values of rows: remove http.values: false from the configuration."))
        }
        // Nothing keeps what a proxy has received from its client.
        let head = HTTPResponse(200, "text/event-stream", "", headers: ["X-Accel-Buffering": "no"])
        guard request.method != "HEAD" else { return .now(head) }
        do {
            let showsValues: @Sendable () -> Bool = { [configuration] in configuration().http.showsValues }
            guard let stream = try changes.begin(request, while: showsValues) else {
                return .now(
                    .text(
                        503,
                        """
                        Too many streams, or requests that wait; \(ChangeStreams.most) streams are possible. Try \
                        again, or read with `martlet history tail`.
                        """, headers: ["Retry-After": "5"]))
            }
            return .stream(head, stream)
        } catch let error as StoreError where error.code == .historyTokenExpired {
            do {
                return .now(.json(410, try JSON.line(ChangeStream.reloadDocument(error, changes.newest()))))
            } catch {
                return .now(refusal(error, request))
            }
        } catch {
            return .now(refusal(error, request))
        }
    }

    /// The same for requests that are answered at once.
    package func respond(_ request: HTTPRequest) -> HTTPResponse {
        do {
            if request.method == "POST" { return try change(request) }
            switch request.path {
            case "/": return DashboardPage.response
            case "/healthz": return .text(200, "ok")
            case "/readyz": return try ready(rules.isAuthorized(request))
            case "/status": return try status()
            case "/activity":
                return .json(
                    200, try store.activity(withValues: configuration().http.showsValues && rules.isIdentified(request))
                )
            case "/digest": return .json(200, try digests.answer())
            case "/metrics":
                return HTTPResponse(200, PrometheusText.contentType, PrometheusText.render(metrics.collect()))
            default:
                return .text(
                    404,
                    "Not found. Use /, /healthz, /readyz, /status, /activity, /digest, /wait, /changes, /metrics.")
            }
        } catch {
            return refusal(error, request)
        }
    }

    private func refusal(_ error: any Error, _ request: HTTPRequest) -> HTTPResponse {
        let code = (error as? StoreError)?.code
        guard code != .invalidArgument, code != .historyTokenExpired else { return .text(400, "\(error)") }
        log.warning("HTTP request failed", metadata: ["path": "\(request.path)", "error": "\(error)"])
        let what = request.method == "POST" ? "Nothing was changed" : "The store can't be read"
        return .text(503, "\(what): \(error)")
    }

    // MARK: Changes

    private enum Change {
        case reapply(Int64)
        case retryQuarantined

        init?(_ path: Substring) {
            let parts = path.split(separator: "/", omittingEmptySubsequences: false)
            switch (parts.count, parts.dropFirst().first, parts.last) {
            case (3, "quarantine", "retry"): self = .retryQuarantined
            case (4, "conflicts", "reapply"):
                guard let id = Int64(parts[2]), id > 0 else { return nil }
                self = .reapply(id)
            default: return nil
            }
        }
    }

    /// Returns true if a POST to the path changes anything.
    package static func isChange(_ path: Substring) -> Bool { Change(path) != nil }

    private func change(_ request: HTTPRequest) throws -> HTTPResponse {
        switch Change(request.path) {
        case nil: return .text(404, "Not found. POST to /conflicts/NUMBER/reapply or /quarantine/retry.")
        case .reapply(let id):
            try actions.reapply(id)
            log.notice("Conflict reapplied over HTTP", metadata: ["conflict": "\(id)"])
            return .json(200, try JSON.line(["reapplied": id]))
        case .retryQuarantined:
            let report = try actions.retryQuarantined()
            log.notice(
                "Quarantined messages retried over HTTP",
                metadata: ["applied": "\(report.applied)", "parked": "\(report.parked)", "kept": "\(report.kept)"])
            return .json(
                200,
                try JSON.line([
                    "applied": report.applied, "parked": report.parked, "superseded": report.superseded,
                    "kept": report.kept,
                ]))
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
        let history = store.measuredHistory()
        var document = try store.status().document(isRunning: true, history: history)
        document.merge(readiness.document) { $1 }
        if let history, let warning = Self.warning(history) {
            document["warnings"] = ((document["warnings"] ?? nil) as? [Any?] ?? []) + [warning]
        }
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

    /// What the dashboard shows if a cursor keeps much more of the history than the bounds.
    private static func warning(_ history: HistoryReport) -> [String: Any?]? {
        let finding = SpaceDoctor.judge(history)
        guard finding.level != .ok else { return nil }
        let text = finding.message.prefix(1).uppercased() + finding.message.dropFirst()
        return ["code": "history", "message": "\(text). \(finding.remedy ?? "")"]
    }
}
