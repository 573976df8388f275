import Foundation
import Logging
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Maintenance of a store while its agent doesn't run.
@Suite struct StoreMaintenanceTests {
    let directory: TemporaryDirectory
    let bus = InMemoryBus(topic: "t", partitionCount: 1)
    let a: TestNode
    let b: TestNode

    init() throws {
        directory = try TemporaryDirectory()
        let schema = "CREATE TABLE setting(key TEXT PRIMARY KEY NOT NULL, value)"
        a = try TestNode("a", bus: bus, directory: directory, schema: schema) { $0.encoding = .json }
        b = try TestNode("b", bus: bus, directory: directory, schema: schema)
    }

    /// Quarantines a message that can be decoded now.
    private func quarantine() throws {
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.publish()
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        var message = try consumer.poll(maxCount: 1, timeout: .milliseconds(1)).messages[0]
        let payload = message.payload
        let text = String(decoding: payload, as: UTF8.self)
        message.payload = Array(text.replacing("\"format\":1", with: "\"format\":2").utf8)
        _ = try b.engine.apply([message], topic: "t")
        try b.changeQuarantined { _ in payload }
    }

    private func park() throws {
        try a.write("CREATE TABLE later(key TEXT PRIMARY KEY NOT NULL)")
        _ = try a.store.attach()
        try a.write("INSERT INTO later VALUES ('l')")
        try a.publish()
        try b.consume()
        try b.write("CREATE TABLE later(key TEXT PRIMARY KEY NOT NULL)")
        _ = try b.store.attach()
    }

    private func agent(log: Logger = quietLog) throws -> Agent {
        var configuration = AgentConfiguration()
        configuration.storePath = b.path
        configuration.sync.name = "b"
        configuration.kafka.bootstrapServers = ["localhost:1"]
        return try Agent(configuration, log: log)
    }

    private func expectLocked(_ body: () throws -> some Any) {
        let error = #expect(throws: StoreError.self) { _ = try body() }
        #expect(error?.code == .locked)
        #expect(error?.hint.contains("Stop the agent") == true)
        #expect(error?.hint.contains("by itself") == true)
    }

    @Test func retryingTheQuarantineFailsWhileAnAgentRuns() throws {
        try quarantine()
        do {
            let lock = try StoreLock(store: b.path)
            expectLocked { try StoreMaintenance.retryQuarantined(store: b.path) }
            expectLocked { try StoreMaintenance.retryQuarantined(store: b.path, id: 1) }
            withExtendedLifetime(lock) {}
        }
        #expect(try b.store.quarantined().count == 1)
        let error = #expect(throws: StoreError.self) { try StoreMaintenance.retryQuarantined(store: b.path, id: 7) }
        #expect(error?.code == .invalidArgument)
        #expect(try StoreMaintenance.retryQuarantined(store: b.path, id: 1).applied == 1)
        #expect(try b.rows("SELECT key FROM setting") == ["k"])
        #expect(!StoreLock.isTaken(store: b.path))
    }

    /// Runs `martlet quarantine` on the second store.
    ///
    /// - Returns: the exit code.
    private func runQuarantine(_ arguments: String...) throws -> Int32 {
        try MartletCommand.run(["quarantine", b.path] + arguments).code
    }

    /// Without the agent's rules, anybody's message would be applied.
    @Test(.enabled(if: MartletCommand.isBuilt, "the command is not built"))
    func theCommandRetriesNoRefusedMessageWithoutTheAgentsRules() throws {
        try quarantine()
        try b.write("UPDATE _martlet_quarantine SET proof = 2")
        #expect(try runQuarantine("--retry-all") == 64 && runQuarantine("--retry", "1") == 64)
        #expect(try b.rows("SELECT key FROM setting") == [] && b.store.quarantined().count == 1)
        let file = directory.path("martlet.yaml")
        try Data("security:\n  origins:\n    \(UUID()): any\n".utf8).write(to: URL(fileURLWithPath: file))
        #expect(try runQuarantine("--retry-all", "--config", file) == 0)
        #expect(try b.rows("SELECT key FROM setting") == [] && b.store.quarantined().count == 1)
        try Data("security:\n  origins:\n    \(a.engine.node): any\n".utf8).write(to: URL(fileURLWithPath: file))
        #expect(try runQuarantine("--retry-all", "--config", file) == 0)
        #expect(try b.rows("SELECT key FROM setting") == ["k"] && b.store.quarantined().isEmpty)
    }

    /// The same for a program that does not pass them.
    @Test func noRefusedMessageIsRetriedWithoutTheAgentsConfiguration() throws {
        try quarantine()
        try b.write("UPDATE _martlet_quarantine SET proof = 2")
        for id in [nil, 1] as [Int64?] {
            let error = #expect(throws: StoreError.self) {
                try StoreMaintenance.retryQuarantined(store: b.path, id: id)
            }
            #expect(error?.code == .invalidArgument)
        }
        #expect(try b.rows("SELECT key FROM setting") == [] && b.store.quarantined().count == 1)
        #expect(try StoreMaintenance.retryQuarantined(store: b.path, configuration: AgentConfiguration()).applied == 1)
    }

    @Test func retryingParkedChangesFailsWhileAnAgentRuns() throws {
        try park()
        do {
            let lock = try StoreLock(store: b.path)
            expectLocked { try StoreMaintenance.retryParked(store: b.path) }
            withExtendedLifetime(lock) {}
        }
        #expect(try b.rows("SELECT key FROM later") == [])
        let report = try StoreMaintenance.retryParked(store: b.path)
        #expect(report.before == 1 && report.after == 0)
        #expect(try b.rows("SELECT key FROM later") == ["l"])
        #expect(try StoreMaintenance.retryParked(store: b.path) == ParkedRetryReport())
    }

    @Test func maintenanceUsesTheConfigurationOfTheAgent() throws {
        try park()
        try b.write("INSERT INTO setting VALUES ('mine', 1)")
        var configuration = AgentConfiguration()
        configuration.sync.encoding = .json
        _ = try StoreMaintenance.retryParked(store: b.path, configuration: configuration)
        let entries = try b.outbox()
        let payloads = try b.store.read { db in try entries.map { try $0.payload(db) } }
        #expect(payloads.map(\.first) == [UInt8(ascii: "{")])
    }

    @Test func maintenanceDoesNotTurnAPlainStoreIntoANode() throws {
        let store = try Store.create(path: directory.path("plain.sqlite"))
        #expect(try StoreMaintenance.retryQuarantined(store: store.path) == QuarantineRetryReport())
        #expect(try StoreMaintenance.retryParked(store: store.path) == ParkedRetryReport())
        #expect(try SyncStatus.read(store).node == nil)
        let missing = directory.path("none.sqlite")
        #expect(throws: StoreError.self) { try StoreMaintenance.retryParked(store: missing) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: directory.url.path).allSatisfy { !$0.hasPrefix("none") }
        )
    }

    /// Runs an agent, whose broker can't be reached, until it has logged a message that begins with this.
    private func runAgent(until message: String) async throws {
        let isLogged = Mutex(false)
        var log = Logger(label: "test") { _ in
            RecordingLogHandler { event, _ in
                if "\(event.message)".hasPrefix(message) { isLogged.withLock { $0 = true } }
            }
        }
        log.logLevel = .info
        let agent = try agent(log: log)
        let running = Task { try await agent.run() }
        try await eventually(message) { isLogged.withLock { $0 } }
        running.cancel()
        try await running.value
    }

    @Test func anAgentRetriesTheQuarantineWhenItStarts() async throws {
        try quarantine()
        try await runAgent(until: "Quarantined messages retried")
        #expect(try b.rows("SELECT key FROM setting") == ["k"])
        #expect(try b.store.quarantined() == [])
    }

    @Test func anAgentStartsEvenIfRetryingTheQuarantineFails() async throws {
        try quarantine()
        try b.write(
            """
            INSERT INTO _martlet_quarantine(id, topic, partition, offset, reason, headers, payload, since)
            SELECT id + 1, topic, partition, offset, 'b', headers, x'00', since
            FROM _martlet_quarantine;
            INSERT INTO _martlet_quarantine(id, topic, partition, offset, reason, headers, payload, since)
            SELECT id + 1, topic, partition, offset, 'c', headers, x'00', since
            FROM _martlet_quarantine WHERE id = 2;
            UPDATE _martlet_quarantine SET headers = '' WHERE id > 1;
            CREATE UNIQUE INDEX refuses ON _martlet_quarantine(reason);
            """)
        try await runAgent(until: "Could not retry quarantined messages")
        #expect(try b.store.quarantined().count == 3)
        #expect(try b.rows("SELECT key FROM setting") == [])
    }
}
