import Foundation
import GRDB
import Logging
import MartletAgent
import MartletExport
import MartletIngest
import MartletHTTP
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import ServiceLifecycle
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct AgentHTTPTests {
    private static let token = "0123456789abcdef0123456789abcdef"
    let folder: TemporaryFolder
    let log: Logger

    init() throws {
        folder = try TemporaryFolder()
        var log = Logger(label: "test")
        log.logLevel = .critical
        self.log = log
    }

    private func store(_ name: String) throws -> Store {
        let store = try Store.create(path: folder.path("\(name).sqlite"))
        try store.write { try $0.execute(sql: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)") }
        _ = try store.attach()
        return store
    }

    private func configuration(_ store: Store, _ servers: [String], token: String? = nil) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.storePath = store.path
        configuration.sync.name = URL(fileURLWithPath: store.path).deletingPathExtension().lastPathComponent
        configuration.kafka.bootstrapServers = servers
        configuration.kafka.topic = "notes"
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        configuration.kafka.statisticsInterval = .milliseconds(50)
        configuration.http.listen = "127.0.0.1:0"
        configuration.http.token = token.map { Secret($0) }
        return configuration
    }

    private struct Node {
        var agent: Agent
        var http: AgentHTTP

        init(_ configuration: AgentConfiguration, log: Logger) throws {
            let registry = MetricsRegistry()
            agent = try Agent(configuration, log: log, metrics: registry)
            http = try AgentHTTP(agent, registry: registry, log: log)
        }

        func get(_ path: String, token: String? = nil) throws -> SocketClient.Answer {
            try SocketClient.get(http.address, path, token: token)
        }

        func metrics() throws -> Exposition { try Exposition(try get("/metrics").body) }
    }

    /// Runs the nodes' services, and shuts them down in order afterwards.
    private func running(_ nodes: [Node], _ body: () async throws -> Void) async throws {
        try await whileRunning(nodes.flatMap { [$0.agent, $0.http] as [any Service] }, log: log, body)
    }

    private func insert(_ count: Int, into store: Store) throws {
        for number in 0..<count {
            try store.write { try $0.execute(sql: "INSERT INTO note(text) VALUES (?)", arguments: ["\(number)"]) }
        }
    }

    @Test func nodesReportPublishedAndAppliedTransactions() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 2], logger: log)
        let (a, b) = (try store("a"), try store("b"))
        let nodes = try [a, b].map { try Node(configuration($0, broker.bootstrapServers), log: log) }
        try await running(nodes) {
            let begin = Date()
            try insert(5, into: a)
            try await eventually("ready") {
                try nodes[1].metrics().value("martlet_transactions_applied_total") == 5
                    && nodes[0].metrics().value("martlet_transactions_published_total") ?? 0 >= 5
                    && nodes.allSatisfy { try $0.get("/readyz").status == 200 }
            }
            let read = try nodes[1].metrics()
            #expect(read.kinds["martlet_commit_to_visible_seconds"] == "histogram")
            #expect(read.value("martlet_commit_to_visible_seconds_count") == 5)
            // All the commits belong to this test, and their times have milliseconds.
            let most = 5 * (Date().timeIntervalSince(begin) + 0.001)
            #expect(try #require(read.value("martlet_commit_to_visible_seconds_sum")) < most)
            #expect(read.value("martlet_commit_to_visible_seconds_bucket", ["le": "+Inf"]) == 5)
            #expect(read.values("martlet_partition_lag_messages") == [0, 0])
            #expect(read.values("martlet_partition_lag_seconds") == [0, 0])
            #expect(read.value("martlet_ready") == 1)
            #expect(read.value("martlet_node_info", ["name": "b"]) == 1)
            // The agent reads the store's status once a second.
            try await eventually("when a was heard of") {
                try nodes[1].metrics().value("martlet_origin_heard_timestamp_seconds", ["origin": "a"]) ?? 0
                    > 1_600_000_000
            }
            #expect(read.value("martlet_store_bytes", ["file": "database"]) ?? 0 > 0)
            #expect(read.value("martlet_history_bytes") ?? 0 > 0)
            try await eventually("statistics of the connections") {
                let read = try nodes[0].metrics()
                return read.value("martlet_kafka_broker_up", ["client": "producer"]) == 1
                    && read.value("martlet_kafka_broker_up", ["client": "consumer"]) == 1
                    && read.value("martlet_kafka_queue_messages") == 0
            }
        }
    }

    @Test(.enabled(if: Promtool.isThere, "promtool is not installed: scripts/install-dependencies.sh --test"))
    func promtoolAcceptsTheMetrics() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 2, "source": 1], logger: log)
        let (a, b) = (try store("a"), try store("b"))
        let nodes = try [a, b].map { store in
            var configuration = self.configuration(store, broker.bootstrapServers)
            configuration.export.prefix = "exported"
            configuration.ingest.topics = [TableMapping(topic: "source", table: "missing")]
            return try Node(configuration, log: log)
        }
        try await running(nodes) {
            try insert(1, into: a)
            // The embedded broker sets no timestamps on messages, events that librdkafka counts need not happen, and
            // nothing is pushed.
            let expected = MetricCatalog.all.map(\.name).filter {
                !$0.contains("clock_offset") && !$0.hasPrefix("martlet_kafka") && !$0.hasPrefix("martlet_otlp")
            }
            try await eventually("all metrics") {
                Set(try nodes[1].metrics().kinds.keys).isSuperset(of: expected + ["martlet_kafka_broker_up"])
            }
            let text = try nodes[1].get("/metrics")
            #expect(text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
            try Promtool.check(text.body)
            // The agent serves exactly the metrics of the catalogue.
            let read = try Exposition(text.body)
            let catalogue = Dictionary(uniqueKeysWithValues: MetricCatalog.all.map { ($0.name, $0) })
            for (name, kind) in read.kinds { #expect(catalogue[name]?.kind == kind, "\(name)") }
            for sample in read.samples where catalogue[sample.name] != nil {
                #expect(Set(sample.labels.keys) == Set(catalogue[sample.name]?.labels ?? []), "\(sample.name)")
            }
        }
    }

    @Test func aNodeIsReadyWhenCaughtUpAndOtherwiseGivesReasons() async throws {
        var broker: EmbeddedBroker? = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let store = try store("a")
        let node = try Node(configuration(store, broker?.bootstrapServers ?? []), log: log)
        func reasons() throws -> [String] {
            let answer = try node.get("/readyz")
            let json = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
            let codes = (json?["reasons"] as? [[String: Any]] ?? []).compactMap { $0["code"] as? String }
            #expect(answer.status == (codes.isEmpty ? 200 : 503))
            #expect(answer.headers["content-type"] == "application/json")
            #expect(json?["ready"] as? Bool == codes.isEmpty)
            return codes
        }
        // The server listens before the agent runs.
        #expect(try node.get("/healthz").status == 200)
        #expect(try reasons() == ["starting"])
        try await running([node]) {
            try await eventually("ready") { try reasons().isEmpty }
            broker = nil
            try await eventually("not ready") { try reasons().contains("reading") }
            #expect(try node.metrics().value("martlet_read_held_up") == 1)
            #expect(try node.get("/healthz").status == 200)
        }
        _ = broker
    }

    @Test func statusMatchesTheCommandAndAddsTheProgress() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let store = try store("a")
        let node = try Node(configuration(store, broker.bootstrapServers), log: log)
        try await running([node]) {
            try insert(3, into: store)
            func status() throws -> [String: Any] {
                let answer = try node.get("/status")
                #expect(answer.status == 200)
                return try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
            }
            try await eventually("published") {
                try status()["acknowledged"] as? Int == 3 && node.get("/readyz").status == 200
            }
            let served = try status()
            let progress = try #require(served["progress"] as? [String: Any])
            #expect(progress["acknowledged"] as? Int == 3)
            #expect(served["ready"] as? Bool == true)
            let command = try SyncStatus.read(store).document(isRunning: true)
            #expect(Set(served.keys) == Set(command.keys).union(["progress", "ready", "reasons", "warnings"]))
            for key in ["node", "name", "store", "lastSequence", "parked"] {
                #expect("\(served[key] ?? "")" == "\((command[key] ?? nil) ?? "")", "\(key)")
            }
            #expect(served["running"] as? Bool == true)
        }
    }

    @Test func theTokenAppearsInNoAnswerAndNoLog() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let store = try store("a")
        let lines = Mutex("")
        var log = Logger(label: "test") { _ in
            RecordingLogHandler { event, metadata in lines.withLock { $0 += "\(event.message) \(metadata)\n" } }
        }
        log.logLevel = .trace
        let node = try Node(configuration(store, broker.bootstrapServers, token: Self.token), log: log)
        try await running([node]) {
            try await eventually("ready") { try node.get("/readyz").status == 200 }
            for path in ["/status", "/metrics", "/readyz", "/healthz", "/none", "/status?token=\(Self.token)"] {
                let open = try node.get(path)
                #expect(open.status == (AgentEndpoints.openPaths.contains(path) ? 200 : 401), "\(path)")
                let answer = try node.get(path, token: Self.token)
                #expect(answer.status == (path == "/none" ? 404 : 200), "\(path)")
                #expect(!answer.body.contains(Self.token) && !open.body.contains(Self.token))
            }
            // Without the token, the answer says whether the node is ready, but not why.
            #expect(try node.get("/readyz").body == "{\"ready\":true}\n")
            let answer = try node.get("/readyz", token: Self.token).body
            #expect(answer == "{\"ready\":true,\"reasons\":[],\"warnings\":[]}\n")
        }
        let said = lines.withLock { $0 }
        #expect(said.contains("Serving HTTP"))
        #expect(!said.contains(Self.token))
    }

    @Test func aPublicAddressIsRefusedWithoutAToken() throws {
        let store = try store("a")
        var configuration = configuration(store, ["localhost:1"])
        configuration.http.listen = "0.0.0.0:0"
        let error = #expect(throws: ConfigurationError.self) { try Node(configuration, log: log) }
        #expect(error?.problems.first?.hasPrefix("http.listen: other machines can reach 0.0.0.0:0") == true)
        configuration.http.token = Secret(Self.token)
        let node = try Node(configuration, log: log)
        node.http.stop()
    }
}
