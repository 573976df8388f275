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

@Suite(.timeLimit(.minutes(5))) struct AgentTests {
    let directory: TemporaryDirectory
    let log = quietLog

    init() throws { directory = try TemporaryDirectory() }

    private func store(_ name: String) throws -> Store { try directory.noteStore(name) }

    private func configuration(_ store: Store, _ broker: [String], topic: String) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.storePath = store.path
        configuration.sync.name = URL(fileURLWithPath: store.path).deletingPathExtension().lastPathComponent
        configuration.kafka.bootstrapServers = broker
        configuration.kafka.topic = topic
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        return configuration
    }

    /// Waits until the store has `count` notes.
    private func wait(_ store: Store, for count: Int) async throws {
        try await eventually("\(count) rows in \(store.path)") {
            try await store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") } == count
        }
    }

    @Test func twoAgentsSyncTheirStoresAndStopOnShutdown() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 2], logger: log)
        let a = try store("a")
        let b = try store("b")
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('before the start')") }
        let agents = try [a, b].map { try Agent(configuration($0, broker.bootstrapServers, topic: "notes"), log: log) }
        try await whileRunning(agents, log: log) {
            try await wait(b, for: 1)
            // Another connection, like another program: only the watcher notices the write.
            let foreign = try DatabaseQueue(path: b.path)
            try await foreign.write {
                try $0.execute(sql: "INSERT INTO note(text) VALUES ('by a program that knows nothing')")
            }
            try await wait(a, for: 2)
        }
        #expect(try StoreDigest.compute(a) == StoreDigest.compute(b))
    }

    @Test(arguments: [nil, "64"] as [String?])
    func p205ATransactionThatIsLargerThanTheProducersQueueIsPublished(kilobytes: String?) async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let a = try store("a")
        let text = String(repeating: "x", count: 300_000)
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES (?)", arguments: [text]) }
        var configuration = configuration(a, broker.bootstrapServers, topic: "notes")
        configuration.kafka.producerQueueBytes = 64 << 10
        configuration.kafka.properties["queue.buffering.max.kbytes"] = kilobytes
        let agent = try Agent(configuration, log: log)
        try await whileRunning([agent], log: log) {
            try await eventually("an acknowledgement") {
                let status = try SyncStatus.read(a)
                return status.lastSequence > 0 && status.unpublished == 0
            }
        }
    }

    @Test func p205LargerMessagesThanByDefaultGoToTheBrokerWhole() throws {
        var configuration = configuration(try store("a"), ["localhost:1"], topic: "notes")
        configuration.sync.maxMessageBytes = 5_000_000
        configuration.kafka.producerQueueBytes = 1 << 20
        let kafka = try Agent(configuration, log: log).configuration.kafka
        #expect(kafka.messageMaxBytes > 5_000_000 && kafka.producerQueueBytes > kafka.messageMaxBytes)
    }

    @Test func p34aSecondAgentOnAStoreFails() throws {
        let a = try store("a")
        let configuration = configuration(a, ["localhost:1"], topic: "t")
        let first = try Agent(configuration, log: log)
        #expect(StoreLock.isTaken(store: a.path))
        do {
            _ = try Agent(configuration, log: log)
            Issue.record("The second agent was not refused")
        } catch let error as StoreError {
            #expect(error.code == .locked)
            #expect(error.message.contains("process \(ProcessInfo.processInfo.processIdentifier)"))
        }
        // The same through a symbolic link.
        var linked = configuration
        linked.storePath = a.path + "-link"
        try FileManager.default.createSymbolicLink(atPath: linked.storePath, withDestinationPath: a.path)
        let error = #expect(throws: StoreError.self) { try Agent(linked, log: log) }
        #expect(error?.code == .locked)
        withExtendedLifetime(first) {}
    }

    /// A retry enqueues local transactions under a node ID that may belong to another store.
    @Test func p203LocalChangesAreNotEnqueuedByARetryBeforeTheTopicWasRead() throws {
        let a = try store("a")
        let agent = try Agent(configuration(a, ["localhost:1"], topic: "t"), log: log)
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('unpublished')") }
        let error = #expect(throws: StoreError.self) { try agent.retryQuarantined() }
        #expect(error?.code == .busy)
        let status = try SyncStatus.read(a)
        #expect(status.lastSequence == 0 && status.unstampedCount == 1)
        // Once something has enqueued them, a retry changes nothing about them.
        _ = try agent.engine.apply([IncomingMessage](), topic: "none")
        #expect(try agent.retryQuarantined() == QuarantineRetryReport())
    }

    /// A descriptor that is closed twice may belong to another file the second time.
    @Test func aRefusedLockClosesNoOtherFile() throws {
        let a = try store("a")
        let held = try StoreLock(store: a.path)
        let lost = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 2) { number in
            for _ in 0..<10_000 {
                if number == 0 {
                    _ = try? StoreLock(store: a.path)
                } else if close(open("/dev/null", O_RDONLY)) != 0 {
                    lost.withLock { $0 += 1 }
                }
            }
        }
        #expect(lost.withLock { $0 } == 0)
        withExtendedLifetime(held) {}
    }

    /// There is no other agent to stop.
    @Test func aFileSystemWithoutLocksIsNamedAsTheReason() {
        func refusal(_ reason: CInt) -> StoreError {
            StoreLock.refusal(reason, of: "/mnt/a.lock", store: "/mnt/a", owner: "7")
        }
        #expect(refusal(EWOULDBLOCK).code == .locked)
        for reason in [ENOLCK, EOPNOTSUPP] {
            let error = refusal(reason)
            #expect(error.code == .readOnly)
            #expect(error.message.contains("/mnt/a.lock") && !error.message.contains("agent"))
        }
    }

    @Test func releasingTheHolderReleasesTheLock() throws {
        let a = try store("a")
        do {
            let lock = try StoreLock(store: a.path)
            #expect(StoreLock.isTaken(store: a.path))
            withExtendedLifetime(lock) {}
        }
        #expect(!StoreLock.isTaken(store: a.path))
    }

    /// An older agent would go on as if the store were as before.
    @Test func noProgramMigratesAStoreOnWhichAnAgentRuns() throws {
        let a = try store("a")
        let path = a.path
        try a.close()
        let foreign = try DatabaseQueue(path: path)
        defer { try? foreign.close() }
        try foreign.write { try $0.execute(sql: OldFormat.sql(store: 14)) }
        func format() throws -> Int? {
            try foreign.read { try Int.fetchOne($0, sql: "SELECT value FROM _martlet_meta WHERE key = 'format'") }
        }
        do {
            let lock = try StoreLock(store: path)
            let error = #expect(throws: StoreError.self) { try Store(path: path) }
            #expect(error?.code == .busy)
            #expect(try format() == 14)
            withExtendedLifetime(lock) {}
        }
        // The agent itself has the lock.
        let agent = try Agent(configuration(path: path), log: log)
        #expect(try format() != 14)
        try Store(path: path).close()
        withExtendedLifetime(agent) {}
    }

    @Test func p35anAgentReportsTheProblemOfItsStore() throws {
        let missing = AgentTests.error {
            try Agent(self.configuration(path: self.directory.path("none.sqlite")), log: self.log)
        }
        #expect(missing?.code == .notAStore)
        #expect(missing?.hint.contains("martlet init") == true)
        let plain = directory.path("plain.sqlite")
        try DatabaseQueue(path: plain).write { try $0.execute(sql: "CREATE TABLE t(x)") }
        let unattached = AgentTests.error { try Agent(self.configuration(path: plain), log: self.log) }
        #expect(unattached?.code == .notAStore)
        #expect(unattached?.hint.contains("martlet attach") == true)
        let text = directory.path("text.sqlite")
        try Data(repeating: 65, count: 5000).write(to: URL(fileURLWithPath: text))
        #expect(AgentTests.error { try Agent(self.configuration(path: text), log: self.log) }?.code == .corrupt)
        #expect(try Data(contentsOf: URL(fileURLWithPath: text)).count == 5000)
    }

    private func configuration(path: String) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.storePath = path
        configuration.kafka.bootstrapServers = ["localhost:1"]
        return configuration
    }

    private static func error(_ body: () throws -> some Any) -> StoreError? {
        do {
            _ = try body()
            return nil
        } catch {
            return error as? StoreError
        }
    }

    /// An agent that stops before it has verified its node ID stamps, numbers and sends nothing.
    @Test func p65AnAgentStoppedBeforeItReadsTheTopicPublishesNothing() async throws {
        let a = try store("a")
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('waits')") }
        let said = Mutex<[String]>([])
        var log = Logger(label: "test") { _ in
            RecordingLogHandler { event, _ in said.withLock { $0.append("\(event.message)") } }
        }
        log.logLevel = .info
        // No broker listens on this port.
        let agent = try Agent(configuration(a, ["localhost:1"], topic: "notes"), log: log)
        try await whileRunning([agent], log: quietLog) {
            try await eventually("the topic can't be read") {
                said.withLock { $0.contains { $0.hasPrefix("Could not read the topic") } }
            }
        }
        let lines = said.withLock { $0 }
        #expect(lines.filter { $0.hasPrefix("Stopped before the topic could be read") }.count == 1)
        #expect(!lines.contains("The node is running"))
        let status = try SyncStatus.read(a)
        #expect(status.lastSequence == 0 && status.origins.isEmpty)
        #expect(!StoreLock.isTaken(store: a.path))
    }

    @Test func anAgentThatWaitsForARecreatedTableCanBeStopped() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let a = try store("a")
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('one')") }
        var configuration = configuration(a, broker.bootstrapServers, topic: "notes")
        configuration.store.schemaPatience = .seconds(600)
        let agent = try Agent(configuration, log: log)
        let pauses = Mutex(0)
        agent.engine.session.schemaPauses.withLock {
            let wait = $0
            $0 = { pause in
                pauses.withLock { $0 += 1 }
                wait(pause)
            }
        }
        try await whileRunning([agent], log: log) {
            try await eventually("an acknowledgement") {
                let status = try SyncStatus.read(a)
                return status.lastSequence > 0 && status.unpublished == 0
            }
            try ForeignProgram.shell.run("DROP TABLE note", on: a.path)
            try await eventually("a wait for the table") { pauses.withLock { $0 } > 0 }
        }
        #expect(!StoreLock.isTaken(store: a.path))
    }

    /// A process that waits for its turn could otherwise take the store during a reload.
    @Test func anAgentCanPassTheLockOnToTheNextOne() async throws {
        let a = try store("a")
        let configuration = configuration(a, ["localhost:1"], topic: "notes")
        let former = try Agent(configuration, log: log)
        let running = Task { try await former.run(keepsLock: true) }
        running.cancel()
        try await running.value
        #expect(StoreLock.isTaken(store: a.path))
        let error = #expect(throws: StoreError.self) { try Agent(configuration, log: log) }
        #expect(error?.code == .locked)
        let next = try Agent(configuration, log: log, lock: former.lock)
        let last = Task { try await next.run() }
        last.cancel()
        try await last.value
        #expect(!StoreLock.isTaken(store: a.path))
    }

    /// A service group cancels its services when one of them has failed.
    @Test func anAgentEndsWhenItsTaskIsCancelled() async throws {
        let a = try store("a")
        let agent = try Agent(configuration(a, ["localhost:1"], topic: "notes"), log: log)
        let running = Task { try await agent.run() }
        running.cancel()
        try await running.value
        #expect(!StoreLock.isTaken(store: a.path))
    }

    /// The audit reads all rows. It must not keep the process from ending.
    @Test(arguments: [true, false]) func anAgentThatIsStoppedDoesNotReadAllRowsFirst(isStopped: Bool) async throws {
        let a = try store("a")
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('one')") }
        let damaging = try Connection.open(path: a.path, configuration: .init(), role: .applier)
        try await damaging.write { try $0.execute(sql: "DELETE FROM note") }
        try damaging.close()
        let agent = try Agent(configuration(a, ["localhost:1"], topic: "notes"), log: log)
        let running = Task {
            if isStopped { withUnsafeCurrentTask { $0?.cancel() } }
            try await agent.run()
        }
        if !isStopped {
            try await eventually("the audit has logged the delete") {
                try a.fetchHistory(HistoryQuery()).flatMap(\.changes).map(\.kind).last == .delete
            }
            running.cancel()
        }
        try await running.value
        let kinds = try a.fetchHistory(HistoryQuery()).flatMap(\.changes).map(\.kind)
        #expect(kinds == (isStopped ? [.insert] : [.insert, .delete]))
        #expect(!StoreLock.isTaken(store: a.path))
    }

    @Test func anAgentThatIsRefusedByTheTopicReleasesItsStore() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let a = try store("a")
        // No agent has recorded where the store is, so only the topic shows that there are two of it.
        try SyncEngine(path: a.path).close()
        let copy = directory.path("copy.sqlite")
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: a.path + suffix) {
            try FileManager.default.copyItem(atPath: a.path + suffix, toPath: copy + suffix)
        }
        let original = try Agent(configuration(a, broker.bootstrapServers, topic: "notes"), log: log)
        let running = Task { try await original.run() }
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('of the original')") }
        try await eventually("an acknowledgement") {
            let status = try SyncStatus.read(a)
            return status.lastSequence > 0 && status.unpublished == 0
        }
        running.cancel()
        try await running.value
        var copied = configuration(a, broker.bootstrapServers, topic: "notes")
        copied.storePath = copy
        let agent = try Agent(copied, log: log)
        let error = await #expect(throws: StoreError.self) { try await agent.run() }
        #expect(error?.code == .copied)
        #expect(!StoreLock.isTaken(store: copy))
        withExtendedLifetime(agent) {}
    }

    @Test(arguments: [true, false]) func p159AnAgentEndsWhenItsFileIsMovedOrReplaced(isReplaced: Bool) async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let a = try store("a")
        let other = try store("other")
        try other.close()
        let isRunning = Mutex(false)
        var log = Logger(label: "test") { _ in
            RecordingLogHandler { event, _ in
                if event.message == "The node is running" { isRunning.withLock { $0 = true } }
            }
        }
        log.logLevel = .info
        let agent = try Agent(configuration(a, broker.bootstrapServers, topic: "notes"), log: log)
        let running = Task { try await agent.run() }
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('one')") }
        try await eventually("the agent runs") { isRunning.withLock { $0 } }
        for suffix in ["", "-wal", "-shm"] {
            try FileManager.default.moveItem(atPath: a.path + suffix, toPath: a.path + ".old" + suffix)
        }
        if isReplaced { try FileManager.default.copyItem(atPath: other.path, toPath: a.path) }
        let error = await #expect(throws: StoreError.self) { try await running.value }
        #expect(error?.code == .moved)
        #expect(error?.message.contains(isReplaced ? "is not the file" : "was moved or deleted") ?? false)
        #expect(!StoreLock.isTaken(store: a.path))
        guard isReplaced else { return }
        // The replacement is intact.
        let found = try Store(path: a.path).read { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
        #expect(found == "ok")
    }

    @Test func anAgentNamesMissingConfigurationValues() {
        do {
            _ = try Agent(AgentConfiguration(), log: log)
            Issue.record("An empty configuration was accepted")
        } catch let error as ConfigurationError {
            #expect(error.problems.contains { $0.hasPrefix("store.path") })
            #expect(error.problems.contains { $0.contains("bootstrapServers") })
        } catch {
            Issue.record("\(error)")
        }
    }
}
