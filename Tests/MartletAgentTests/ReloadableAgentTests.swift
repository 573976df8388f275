import Foundation
import GRDB
import Logging
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct ReloadableAgentTests {
    private let directory: TemporaryDirectory
    private let broker: EmbeddedBroker
    private let stores: [Store]

    init() throws {
        directory = try TemporaryDirectory()
        broker = try EmbeddedBroker(topics: ["notes": 1], logger: quietLog)
        stores = try ["a", "b"].map(directory.noteStore)
    }

    private func configuration(_ node: Int) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.storePath = stores[node].path
        configuration.sync.name = "node \(node)"
        configuration.kafka.bootstrapServers = broker.bootstrapServers
        configuration.kafka.topic = "notes"
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        configuration.logLevel = .critical
        return configuration
    }

    private func insert(_ text: String, into node: Int) throws {
        try stores[node].write { try $0.execute(sql: "INSERT INTO note(text) VALUES (?)", arguments: [text]) }
    }

    /// Runs the first node with a reloadable agent, and the other one with a plain agent.
    private func running(_ body: (ReloadableAgent) async throws -> Void) async throws {
        let agent = try ReloadableAgent(configuration(0), log: quietLog)
        let other = try Agent(configuration(1), log: quietLog)
        try await whileRunning([agent, other], log: quietLog) { try await body(agent) }
        #expect(!StoreLock.isTaken(store: stores[0].path))
    }

    private func waitForEqualDigests() async throws {
        try await eventually("equal digests") { try StoreDigest.compute(stores[0]) == StoreDigest.compute(stores[1]) }
    }

    @Test func reloadAppliesANewConfigurationWithoutLosingWrites() async throws {
        try await running { agent in
            try insert("before", into: 0)
            try await waitForEqualDigests()
            for round in 0..<5 {
                let former = agent.current
                var changed = configuration(0)
                changed.sync.name = "called \(round)"
                changed.kafka.clientID = "round-\(round)"
                #expect(try agent.reload(changed))
                // Write on both nodes meanwhile.
                try insert("\(round) here", into: 0)
                try insert("\(round) there", into: 1)
                try await eventually("another agent") { agent.current !== former }
                #expect(agent.current.configuration.sync.name == "called \(round)")
            }
            // The name travels with the transactions of the node.
            try insert("at last", into: 0)
            try await waitForEqualDigests()
            let texts = try await stores[1].database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") }
            #expect(texts == 12)
            let status = try SyncStatus.read(stores[1])
            #expect(status.origins.contains { $0.name == "called 4" })
        }
    }

    @Test func reloadRefusesAnInvalidOrRestartOnlyConfigurationAsAWhole() async throws {
        try await running { agent in
            let former = agent.current
            var wrong = configuration(0)
            wrong.sync.name = "other"
            wrong.kafka.bootstrapServers = []
            wrong.check.interval = .seconds(-1)
            let wrongValues = #expect(throws: ConfigurationError.self) { try agent.reload(wrong) }
            #expect(wrongValues?.problems.count == 2)
            var moved = configuration(0)
            moved.sync.name = "other"
            moved.storePath = stores[1].path
            moved.http.listen = "127.0.0.1:1"
            moved.http.token = Secret("0123456789abcdef")
            moved.telemetry.metricsURL = "http://127.0.0.1:1/v1/metrics"
            moved.logFormat = .json
            let movedValues = #expect(throws: ConfigurationError.self) { try agent.reload(moved) }
            #expect(
                movedValues?.problems.map { $0.prefix { $0 != ":" } } == [
                    "store.path", "http.listen", "http.tokenFile", "telemetry.otlp.endpoint", "log.format",
                ])
            var locked = configuration(0)
            locked.security.keyRingFile = directory.path("no-such-file")
            let lockedValues = #expect(throws: StoreError.self) { try agent.reload(locked) }
            #expect(lockedValues?.message.contains("no-such-file") == true)
            var authorityless = configuration(0)
            authorityless.kafka.securityProtocol = .ssl
            authorityless.kafka.tls.caLocation = directory.path("no-such.pem")
            let authoritylessValues = #expect(throws: ConfigurationError.self) { try agent.reload(authorityless) }
            #expect(authoritylessValues?.problems.first?.hasPrefix("kafka.tls.caFile: ") == true)
            var unknown = configuration(0)
            unknown.kafka.properties["no.such.property"] = "1"
            #expect(throws: ConfigurationError.self) { try agent.reload(unknown) }
            #expect(agent.current === former)
            try insert("still here", into: 0)
            try await waitForEqualDigests()
            #expect(agent.current === former)
        }
    }

    @Test func reloadOfTheSameConfigurationRestartsNothing() async throws {
        try await running { agent in
            let former = agent.current
            #expect(try !agent.reload(configuration(0)))
            try insert("still here", into: 0)
            try await waitForEqualDigests()
            #expect(agent.current === former)
        }
    }

    /// A running producer would go on with the old certificate, and never get through once that has expired.
    @Test func reloadAppliesAFileThatWasRenewedUnderItsName() throws {
        let file = directory.path("signing.key")
        _ = try KeyFiles.generateSigningKey(file)
        var signing = configuration(0)
        signing.security.signingKeyFile = file
        let agent = try ReloadableAgent(signing, log: quietLog)
        #expect(try !agent.reload(signing))
        // It is kept, so that the new file is surely another one.
        try FileManager.default.moveItem(atPath: file, toPath: file + ".old")
        _ = try KeyFiles.generateSigningKey(file)
        #expect(try agent.reload(signing))
        #expect(try !agent.reload(signing))
    }

    @Test(arguments: ["ca", "certificate", "key", "property"])
    func everyFileForTLSIsSeenToBeRenewed(which: String) throws {
        let file = directory.path("\(which).pem")
        try Data("old".utf8).write(to: URL(fileURLWithPath: file))
        var configuration = configuration(0)
        switch which {
        case "ca": configuration.kafka.tls.caLocation = file
        case "certificate": configuration.kafka.tls.certificateLocation = file
        case "key": configuration.kafka.tls.keyLocation = file
        default: configuration.kafka.properties["ssl.certificate.location"] = file
        }
        let before = configuration.fileVersions
        try Data("renewed".utf8).write(to: URL(fileURLWithPath: file))
        #expect(before.count == 1 && configuration.fileVersions.count == 1)
        #expect(configuration.fileVersions != before)
    }

    @Test func reloadRevertsAConfigurationThatHasNotRunYet() async throws {
        try await running { agent in
            let former = agent.current
            var changed = configuration(0)
            changed.sync.name = "other"
            #expect(try agent.reload(changed))
            #expect(try agent.reload(configuration(0)))
            try await eventually("the former name") {
                agent.current !== former && agent.current.configuration.sync.name == "node 0"
            }
            try insert("here", into: 0)
            try await waitForEqualDigests()
        }
    }

    /// Only the store can detect this problem.
    @Test func theFormerConfigurationStaysIfTheStoreRefusesTheNewOne() async throws {
        try await running { agent in
            let former = agent.current
            var refused = configuration(0)
            refused.sync.name = "other"
            refused.security.rules.origins = [former.engine.node.uuid: [NodeSigningKey().publicKey]]
            #expect(try agent.reload(refused))
            try await eventually("another agent") { agent.current !== former }
            #expect(agent.current.configuration.sync.name == "node 0")
            try insert("here", into: 0)
            try await waitForEqualDigests()
            // The refused configuration is no longer requested: reloading the former one changes nothing.
            #expect(try !agent.reload(configuration(0)))
        }
    }

    /// Locks a store until its input is closed.
    private static let locking = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        sys.stdin.read()
        """

    /// A transaction of another program that takes long would otherwise end the agent for good.
    @Test func aReloadWaitsWhileTheStoreIsLocked() async throws {
        let isRetried = Mutex(false)
        let log = Logger(label: "test") { _ in
            RecordingLogHandler { event, _ in
                if "\(event.message)" == "Could not read the store; will retry" { isRetried.withLock { $0 = true } }
            }
        }
        var first = configuration(0)
        first.store.busyTimeout = .milliseconds(50)
        first.logLevel = .warning
        let agent = try ReloadableAgent(first, log: log)
        try await whileRunning([agent], log: quietLog) {
            // From here on, only the reload logs that message.
            try await eventually("the topic is read") { agent.current.consumer.currentProgress.steppedAt != nil }
            let other = try RunningProgram("python3", ["-c", Self.locking, stores[0].path])
            #expect(try other.line() == "locked")
            isRetried.withLock { $0 = false }
            var changed = first
            changed.sync.name = "other"
            #expect(try agent.reload(changed))
            try await eventually("another attempt") { isRetried.withLock { $0 } }
            _ = try other.finish()
            try await eventually("another agent") { agent.current.configuration.sync.name == "other" }
        }
    }

    @Test func aShutdownOverridesAReload() async throws {
        try await running { agent in
            var changed = configuration(0)
            changed.sync.name = "other"
            let isTaken = try agent.reload(changed)
            #expect(isTaken)
        }
        try insert("afterwards", into: 0)
        let next = try Agent(configuration(0), log: quietLog)
        withExtendedLifetime(next) {}
    }
}
