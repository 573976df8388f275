import Foundation
import GRDB
import MartletAgent
import MartletExport
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Exports over a broker, by agents and by hand.
@Suite(.timeLimit(.minutes(5))) struct ExportAgentTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func broker() throws -> EmbeddedBroker {
        try EmbeddedBroker(
            topics: ["notes": 1, "shop.note": 1, "shop.transaction": 1, "shop.export": 1], logger: quietLog)
    }

    private func configuration(_ store: Store, _ broker: EmbeddedBroker) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.storePath = store.path
        configuration.kafka.bootstrapServers = broker.bootstrapServers
        configuration.kafka.topic = "notes"
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        configuration.export.prefix = "shop"
        return configuration
    }

    /// The texts of the notes on the topic, by their keys.
    private func exported(_ broker: EmbeddedBroker) throws -> [String] {
        var configuration = KafkaConfiguration(bootstrapServers: broker.bootstrapServers, topic: "shop.note")
        configuration.storesGroupOffsets = false
        let consumer = try KafkaBus(configuration, logger: quietLog).makeConsumer()
        defer { consumer.close() }
        let end = try consumer.watermarks(partition: 0, timeout: .seconds(10)).high
        guard end > 0 else { return [] }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        var texts: [[UInt8]: String] = [:]
        var next: Int64 = 0
        while next < end {
            for message in try consumer.poll(maxCount: 100, timeout: .seconds(10)).messages {
                next = message.position.offset + 1
                let value = try? JSONSerialization.jsonObject(with: Data(message.payload)) as? [String: Any]
                texts[message.key] = (value?["after"] as? [String: Any])?["text"] as? String
            }
        }
        return texts.values.sorted()
    }

    @Test func anAgentExportsWhatItsNodeAndOthersWrite() async throws {
        let broker = try broker()
        let (a, b) = (try directory.noteStore("a"), try directory.noteStore("b"))
        try a.write { try $0.execute(sql: "INSERT INTO note VALUES (1, 'before')") }
        let agents = try [a, b].map { try Agent(configuration($0, broker), log: quietLog) }
        try await whileRunning(agents, log: quietLog) {
            try await eventually("the first note") { try exported(broker) == ["before"] }
            try a.write { try $0.execute(sql: "UPDATE note SET text = 'of a'") }
            try b.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('of b')") }
            try await eventually("both notes") { try exported(broker) == ["of a", "of b"] }
            try a.write { try $0.execute(sql: "DELETE FROM note WHERE text = 'of a'") }
            try await eventually("the delete") { try exported(broker) == ["of b"] }
            // Not later: they stop one after the other, and the second may take over from the first.
            let exporters = try [a, b].filter { try $0.cursors().contains { $0.name == "martlet.export.shop" } }
            #expect(exporters.count == 1)
        }
    }

    @Test func aStoreWithoutAnAgentIsExportedByHand() throws {
        let broker = try broker()
        let a = try directory.noteStore("a")
        try a.write { try $0.execute(sql: "INSERT INTO note(text) VALUES ('one'), ('two')") }
        let configuration = configuration(a, broker)
        #expect(try ExportRun(configuration, log: quietLog).runUntilCaughtUp() == 2)
        try a.write { try $0.execute(sql: "DELETE FROM note WHERE text = 'one'") }
        #expect(try ExportRun(configuration, log: quietLog).runUntilCaughtUp() == 1)
        #expect(try exported(broker) == ["two"])
        #expect(try ExportRun(configuration, isAgain: true, log: quietLog).runUntilCaughtUp() == 1)
        let lock = try StoreLock(store: a.path)
        let error = #expect(throws: StoreError.self) { _ = try ExportRun(configuration, log: quietLog) }
        #expect(error?.code == .locked && error?.hint.contains("export.prefix") ?? false)
        withExtendedLifetime(lock) {}
    }

    @Test func rightsToExportAreOnAllTopicsOfThePrefix() {
        let rights = TopicRights.export(prefix: "shop").map(\.description)
        #expect(rights == ["Read on topic shop.", "Write on topic shop.", "Create on topic shop."])
    }

    @Test func aPrefixMustNotBeTheTopicOfTheNodes() throws {
        let broker = try broker()
        var configuration = configuration(try directory.noteStore("a"), broker)
        for (prefix, topic) in [("notes", "notes"), ("notes", "notes.of.all")] {
            (configuration.export.prefix, configuration.kafka.topic) = (prefix, topic)
            #expect(configuration.validate().contains { $0.hasPrefix("export.prefix: notes must not be") })
        }
        configuration.kafka.topic = "notesOfAll"
        #expect(!configuration.validate().contains { $0.hasPrefix("export.prefix") })
    }
}
