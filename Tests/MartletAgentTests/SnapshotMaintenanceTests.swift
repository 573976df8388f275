import Foundation
import GRDB
import MartletAgent
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SnapshotMaintenanceTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func aManualSnapshotIsListedAndLoadedManually() throws {
        let broker = try EmbeddedBroker(topics: ["notes": 1, "notes.snapshot": 1], logger: quietLog)
        var configuration = AgentConfiguration()
        configuration.kafka.bootstrapServers = broker.bootstrapServers
        configuration.kafka.topic = "notes"
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        let a = try directory.noteStore("a")
        let b = try directory.noteStore("b")
        #expect(try StoreMaintenance.loadSnapshot(store: b.path, configuration: configuration, log: quietLog) == nil)
        for number in 1...3 {
            try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES (?)", arguments: ["\(number)"]) }
        }
        let made = try StoreMaintenance.makeSnapshot(store: a.path, configuration: configuration, log: quietLog)
        #expect(made.isComplete)
        #expect(try StoreMaintenance.snapshots(configuration, log: quietLog).map(\.id) == [made.id])
        try b.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('own')") }
        let loaded = try StoreMaintenance.loadSnapshot(store: b.path, configuration: configuration, log: quietLog)
        #expect(loaded?.isFinished == true)
        #expect(loaded?.rows == 3)
        let texts = try b.database.read { try String.fetchAll($0, sql: "SELECT text FROM note ORDER BY text") }
        #expect(texts == ["1", "2", "3", "own"])
        #expect(try StoreMaintenance.loadSnapshot(store: b.path, configuration: configuration, log: quietLog) == nil)
        let lock = try StoreLock(store: b.path)
        let error = try #require(throws: StoreError.self) {
            try StoreMaintenance.loadSnapshot(made.id, store: b.path, configuration: configuration, log: quietLog)
        }
        #expect(error.code == .locked)
        withExtendedLifetime(lock) {}
    }
}
