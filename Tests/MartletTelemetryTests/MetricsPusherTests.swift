import Foundation
import GRDB
import Logging
import MartletAgent
import MartletHTTP
import MartletKafka
import MartletStore
import MartletSync
import MartletTelemetry
import MartletTestSupport
import Metrics
import Synchronization
import Testing

private let quietLog: Logger = {
    var log = Logger(label: "test")
    log.logLevel = .critical
    return log
}()

@Suite(.timeLimit(.minutes(5))) struct MetricsPusherTests {
    private let lines = Lines()
    private let registry = MetricsRegistry()

    /// What was logged.
    private final class Lines: Sendable {
        private let all = Mutex<[String]>([])
        func add(_ line: String) { all.withLock { $0.append(line) } }
        func count(_ text: String) -> Int { all.withLock { $0.filter { $0.contains(text) }.count } }
    }

    private var log: Logger {
        let lines = lines
        return Logger(label: "test") { _ in
            RecordingLogHandler { event, metadata in lines.add("\(event.level) \(event.message) \(metadata)") }
        }
    }

    /// Pushes while the body runs, and stops with a last push.
    private func pushing(
        _ configuration: TelemetryConfiguration, _ body: () async throws -> Void
    ) async throws {
        let registry = registry
        let pusher = MetricsPusher(
            registry: registry, log: log, configuration: { configuration }, node: { "the node" },
            collect: { registry.collect() })
        try await whileRunning([pusher], log: quietLog, body)
    }

    private func value(_ name: String) -> Double? {
        registry.collect().first { $0.name == name }?.samples.first?.value
    }

    @Test func requestsAreThoseOfOTLPOverHTTP() async throws {
        let collector = try CollectorStub([.init()])
        var configuration = collector.configuration
        configuration.headers = ["Authorization": "Bearer s3cret-token"]
        configuration.attributes = ["host.name": "box"]
        Counter(label: "sent_total", factory: registry).increment(by: 3)
        try await pushing(configuration) {
            try await eventually("three pushes") { collector.requests.count >= 3 }
        }
        for request in collector.requests {
            #expect(request.method == "POST" && request.path == "/v1/metrics")
            #expect(request.headers["content-type"] == "application/json")
            #expect(request.headers["authorization"] == "Bearer s3cret-token")
            #expect(request.headers["user-agent"] == "martlet/\(AgentVersion.current)")
            let read = try PushedMetrics(request.body)
            #expect(
                read.resource == [
                    "service.name": "martlet", "service.version": AgentVersion.current,
                    "service.instance.id": "the node", "host.name": "box",
                ])
            #expect(read.lines.contains("sent_total 3"))
        }
        let starts = try collector.requests.map { try PushedMetrics($0.body).starts }
        #expect(Set(starts).count == 1 && starts.first?.count == 1)
        #expect(lines.count("s3cret") == 0 && lines.count("Pushing metrics") == 1)
        #expect(value("martlet_otlp_push_failures_total") == 0)
    }

    @Test func theLastPushComesAtShutdown() async throws {
        let collector = try CollectorStub([.init()])
        var configuration = collector.configuration
        configuration.interval = .seconds(3600)
        let counter = Counter(label: "sent_total", factory: registry)
        try await pushing(configuration) {
            try await eventually("the first push") { collector.requests.count == 1 }
            counter.increment(by: 7)
        }
        #expect(collector.requests.count == 2)
        let last = try #require(collector.requests.last)
        #expect(try PushedMetrics(last.body).lines.contains("sent_total 7"))
    }

    @Test func aFailureIsLoggedOnceAndCounted() async throws {
        let busy = CollectorStub.Response(status: 503)
        let collector = try CollectorStub([busy, busy, busy, .init()])
        try await pushing(collector.configuration) {
            try await eventually("recovery") { lines.count("Metrics are pushed again") == 1 }
        }
        #expect(lines.count("warning Could not push metrics; will retry") == 1)
        #expect(lines.count("debug Could not push metrics") == 2)
        #expect(value("martlet_otlp_push_failures_total") == 3)
    }

    @Test func theSameRequestIsRepeated() async throws {
        let collector = try CollectorStub([.init(status: 429, headers: ["Retry-After": "1"]), .init()])
        var configuration = collector.configuration
        configuration.interval = .seconds(3600)
        Counter(label: "sent_total", factory: registry).increment()
        try await pushing(configuration) {
            try await eventually("the repetition") { lines.count("Metrics are pushed again") == 1 }
            #expect(collector.requests.count == 2)
        }
        #expect(collector.requests[0].body == collector.requests[1].body)
    }

    @Test func aRefusalIsAnErrorThatSaysWhatToDo() async throws {
        let collector = try CollectorStub([.init(status: 401, body: "who are you?")])
        try await pushing(collector.configuration) {
            try await eventually("two refusals") { collector.requests.count >= 3 }
        }
        #expect(lines.count("error The collector refuses the metrics") == 1)
        #expect(lines.count("who are you?. Check the token or key in telemetry.otlp.headersFile") >= 1)
    }

    @Test func redirectsAreNotFollowed() async throws {
        let other = try CollectorStub([.init()])
        let url = try #require(other.configuration.metricsURL)
        let collector = try CollectorStub([.init(status: 307, headers: ["Location": url])])
        try await pushing(collector.configuration) {
            try await eventually("a refusal") { lines.count("error The collector refuses the metrics") == 1 }
        }
        #expect(other.requests.isEmpty)
    }

    @Test func rejectedPointsAreCounted() async throws {
        let partial = #"{"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "too old"}}"#
        let collector = try CollectorStub([.init(body: partial), .init()])
        try await pushing(collector.configuration) {
            try await eventually("two pushes") { collector.requests.count >= 2 }
        }
        #expect(lines.count("warning The collector rejects some of the metrics") == 1 && lines.count("too old") == 1)
        #expect(value("martlet_otlp_rejected_points_total") == 2)
    }

    @Test func aCollectorThatDoesNotAnswerHoldsUpNoShutdown() async throws {
        let collector = try CollectorStub([])
        var configuration = collector.configuration
        configuration.timeout = .seconds(600)
        configuration.interval = .seconds(3600)
        let begin = ContinuousClock.now
        try await pushing(configuration) {
            try await eventually("a request") { collector.requests.count == 1 }
        }
        // A second until the request notices, three for the last one, and room for a busy machine.
        #expect(ContinuousClock.now - begin < .seconds(60))
        #expect(lines.count("Could not push the last metrics") == 1)
    }

    @Test func anAgentPushesWhatItServes() async throws {
        let folder = try TemporaryFolder()
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: quietLog)
        let collector = try CollectorStub([.init()])
        let store = try Store.create(path: folder.path("a.sqlite"))
        try store.write { try $0.execute(sql: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)") }
        _ = try store.attach()
        var configuration = AgentConfiguration()
        configuration.storePath = store.path
        configuration.sync.name = "a"
        configuration.kafka.bootstrapServers = broker.bootstrapServers
        configuration.kafka.topic = "notes"
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        let registry = registry
        let agent = try ReloadableAgent(configuration, log: quietLog, metrics: registry)
        let metrics = AgentMetrics(agent, registry: registry, log: quietLog)
        let telemetry = collector.configuration
        let texts = Texts()
        let pusher = MetricsPusher(
            registry: registry, log: log, configuration: { telemetry },
            node: { agent.current.engine.node.description },
            collect: {
                let families = metrics.collect()
                texts.add(PushedMetrics.lines(families))
                return families
            })
        try await whileRunning([pusher, agent], log: quietLog) {
            for number in 0..<5 {
                try store.write { try $0.execute(sql: "INSERT INTO note(text) VALUES (?)", arguments: ["\(number)"]) }
            }
            try await eventually("published") {
                guard let body = collector.requests.last?.body else { return false }
                return try PushedMetrics(body).lines.contains {
                    $0.hasPrefix("martlet_transactions_published_total ") && !$0.hasSuffix(" 0")
                }
            }
        }
        // Each request has exactly what Prometheus would have got at that moment. One that was under way when the agent
        // stopped may not have arrived.
        let pushed = try collector.requests.map { try PushedMetrics($0.body) }
        let collected = Set(texts.all)
        #expect(pushed.count >= collected.count - 1)
        for request in pushed { #expect(collected.contains(request.lines)) }
        let last = try #require(pushed.last)
        #expect(last.lines == texts.all.last)
        #expect(last.resource["service.instance.id"] == agent.current.engine.node.description)
    }

    private final class Texts: Sendable {
        private let texts = Mutex<[[String]]>([])
        func add(_ lines: [String]) { texts.withLock { $0.append(lines) } }
        var all: [[String]] { texts.withLock { $0 } }
    }
}
