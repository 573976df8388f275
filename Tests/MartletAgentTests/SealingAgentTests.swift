import Foundation
import GRDB
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Agents with encryption keys, over a broker.
@Suite(.timeLimit(.minutes(5))) struct SealingAgentTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func configuration(_ store: Store, _ broker: EmbeddedBroker) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.storePath = store.path
        configuration.kafka.bootstrapServers = broker.bootstrapServers
        configuration.kafka.topic = "notes"
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        return configuration
    }

    private func wait(_ store: Store, _ sql: String, for count: Int) async throws {
        try await eventually("\(count) of \(sql) in \(store.path)") {
            try await store.database.read { try Int.fetchOne($0, sql: sql) } == count
        }
    }

    @Test func agentsAdoptANewKeyWhileTheyRun() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: quietLog)
        let a = try directory.noteStore("a")
        let b = try directory.noteStore("b")
        let rings = [directory.path("ring-a"), directory.path("ring-b")]
        _ = try KeyFiles.addKey("k1", makesCurrent: true, to: rings[0])
        try FileManager.default.copyItem(atPath: rings[0], toPath: rings[1])
        let agents = try zip([a, b], rings).map { store, ring in
            var configuration = configuration(store, broker)
            configuration.security.keyRingFile = ring
            return try Agent(configuration, log: quietLog)
        }
        try await whileRunning(agents, log: quietLog) {
            try await a.database.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('with the first key')") }
            try await wait(b, "SELECT count(*) FROM note", for: 1)
            _ = try KeyFiles.addKey("k2", makesCurrent: true, to: rings[0])
            try await a.database.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('with the second')") }
            try await eventually("a message that lacks its key") { try b.quarantined().map(\.missingKey) == ["k2"] }
            // Overwrite the file in place, as configuration management does.
            try Data(contentsOf: URL(fileURLWithPath: rings[0])).write(to: URL(fileURLWithPath: rings[1]))
            try await wait(b, "SELECT count(*) FROM note", for: 2)
            try await eventually("an empty quarantine") { try b.quarantined() == [] }
        }
        #expect(try StoreDigest.compute(a) == StoreDigest.compute(b))
    }

    @Test func anAgentDoesNotStartWithUnusableKeys() throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: quietLog)
        let store = try directory.noteStore("a")
        var configuration = configuration(store, broker)
        configuration.security.keyRingFile = directory.path("none")
        #expect(throws: StoreError.self) { try Agent(configuration, log: quietLog) }
        configuration.security.keyRingFile = nil
        configuration.security.signingKeyFile = directory.path("none")
        #expect(throws: StoreError.self) { try Agent(configuration, log: quietLog) }
    }
}
