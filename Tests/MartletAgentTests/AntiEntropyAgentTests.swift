import Foundation
import GRDB
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Agents with anti-entropy checks.
@Suite(.timeLimit(.minutes(5))) struct AntiEntropyAgentTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func wait(_ store: Store, until sql: String) async throws {
        try await eventually(sql) {
            try await store.database.read { try Bool.fetchOne($0, sql: "SELECT \(sql)") } == true
        }
    }

    @Test func agentsFindAndRepairADivergence() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1, "notes.check": 1], logger: quietLog)
        let a = try directory.noteStore("a")
        let b = try directory.noteStore("b")
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('sound')") }
        let agents = try [a, b].map { store in
            var configuration = AgentConfiguration()
            configuration.storePath = store.path
            configuration.sync.name = URL(fileURLWithPath: store.path).deletingPathExtension().lastPathComponent
            configuration.kafka.bootstrapServers = broker.bootstrapServers
            configuration.kafka.topic = "notes"
            configuration.kafka.fetchWaitMax = .milliseconds(10)
            configuration.kafka.idleFetchWaitMax = .zero
            configuration.check.interval = .milliseconds(200)
            return try Agent(configuration, log: quietLog)
        }
        try await whileRunning(agents, log: quietLog) {
            try await wait(b, until: "EXISTS (SELECT 1 FROM note)")
            let damaging = try Connection.open(path: b.path, configuration: .init(), role: .applier)
            try await damaging.write { try $0.execute(sql: "UPDATE note SET text = 'bad'") }
            try damaging.close()
            try await wait(b, until: "EXISTS (SELECT 1 FROM note WHERE text = 'sound')")
        }
        #expect(try b.divergences().map(\.kind) == [.otherValue])
        let texts = try await a.database.read { try String.fetchAll($0, sql: "SELECT text FROM note") }
        #expect(texts == ["sound"])
    }
}
