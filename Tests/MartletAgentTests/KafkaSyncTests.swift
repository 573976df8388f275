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

@Suite(.timeLimit(.minutes(5))) struct KafkaSyncTests {
    let directory: TemporaryDirectory
    let log = quietLog

    init() throws { directory = try TemporaryDirectory() }

    private func store(_ name: String) throws -> Store { try directory.noteStore(name) }

    private func sync(_ broker: EmbeddedBroker, _ name: String) throws -> KafkaSync {
        let address = try #require(broker.bootstrapServers.first)
        var sync = KafkaSync.kafka(address, topic: "notes", name: name)
        sync.configuration.kafka.fetchWaitMax = .milliseconds(10)
        sync.configuration.kafka.idleFetchWaitMax = .zero
        sync.log = log
        return sync
    }

    private func count(_ store: Store) throws -> Int? {
        try store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") }
    }

    @Test func storesSyncAsLongAsTheirSessionsLive() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let (a, b) = (try store("a"), try store("b"))
        let first = try sync(broker, "a").start(store: a.path)
        var second: (any StoreSyncSession)? = try sync(broker, "b").start(store: b.path)
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('from a')") }
        try await eventually("the row on b") { try count(b) == 1 }
        #expect(StoreLock.isTaken(store: b.path))
        second = nil
        try await eventually("the end of a session that nobody holds") { !StoreLock.isTaken(store: b.path) }
        withExtendedLifetime(second) {}
        await first.stop()
        #expect(!StoreLock.isTaken(store: a.path))
        #expect(try StoreDigest.compute(a) == StoreDigest.compute(b))
    }

    @Test func aSecondSessionTakesOverWhenTheFirstEnds() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let (a, b) = (try store("a"), try store("b"))
        let first = try sync(broker, "a").start(store: a.path)
        try await eventually("the first session's lock") { StoreLock.isTaken(store: a.path) }
        let heir = try sync(broker, "a").start(store: a.path)
        await first.stop()
        let other = try sync(broker, "b").start(store: b.path)
        try b.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('from b')") }
        try await eventually("the row on a") { try count(a) == 1 }
        await heir.stop()
        await other.stop()
    }

    @Test func startRefusesAnInvalidConfigurationAtOnce() throws {
        var sync = KafkaSync.kafka(topic: "notes")
        #expect(throws: ConfigurationError.self) { try sync.start(store: "somewhere.sqlite") }
        sync = .kafka("localhost:1", topic: "a topic with spaces")
        #expect(throws: ConfigurationError.self) { try sync.start(store: "somewhere.sqlite") }
    }

    @Test func aDamagedFileEndsTheSessionWithItsError() async throws {
        let path = directory.path("damaged.sqlite")
        try Data(repeating: 65, count: 5000).write(to: URL(fileURLWithPath: path))
        let session = try KafkaSync.kafka("localhost:1", topic: "notes").start(store: path)
        try await eventually("the end of the session") { session.failure != nil }
        #expect((session.failure as? StoreError)?.code == .corrupt)
        #expect(!StoreLock.isTaken(store: path))
        // Returns at once.
        await session.stop()
    }

    @Test func aSessionThatWaitsForItsTurnHasNotFailed() async throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1], logger: log)
        let a = try store("a")
        let first = try sync(broker, "a").start(store: a.path)
        try await eventually("the first session's lock") { StoreLock.isTaken(store: a.path) }
        let waits = Mutex(0)
        var second = try sync(broker, "a")
        second.log = Logger(label: "test") { _ in
            RecordingLogHandler { event, _ in
                if "\(event.message)".contains("waiting for its turn") { waits.withLock { $0 += 1 } }
            }
        }
        let heir = try second.start(store: a.path)
        try await eventually("the second session's wait") { waits.withLock { $0 } == 1 }
        #expect(heir.failure == nil)
        await heir.stop()
        #expect(heir.failure == nil)
        await first.stop()
    }
}
