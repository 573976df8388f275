import Foundation
import GRDB
import MartletAgent
import MartletIngest
import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Ingests over a broker, by agents.
@Suite(.timeLimit(.minutes(5))) struct IngestAgentTests {
    private static let topic = "pg.public.country"
    let directory: TemporaryDirectory
    let broker: EmbeddedBroker

    init() throws {
        directory = try TemporaryDirectory()
        broker = try EmbeddedBroker(topics: ["notes": 1, Self.topic: 1], logger: quietLog)
    }

    private func store(_ name: String) throws -> Store {
        let store = try Store.create(path: directory.path("\(name).sqlite"))
        try store.write { try $0.execute(sql: "CREATE TABLE country(code TEXT PRIMARY KEY NOT NULL, name TEXT)") }
        _ = try store.attach()
        return store
    }

    private func configuration(_ store: Store, ingests: Bool = true) -> AgentConfiguration {
        var configuration = AgentConfiguration()
        configuration.storePath = store.path
        configuration.kafka.bootstrapServers = broker.bootstrapServers
        configuration.kafka.topic = "notes"
        configuration.kafka.fetchWaitMax = .milliseconds(10)
        configuration.kafka.idleFetchWaitMax = .zero
        if ingests { configuration.ingest.topics = [TableMapping(topic: Self.topic, table: "country")] }
        return configuration
    }

    private func send(_ records: [(key: String, value: String?)]) throws {
        let configuration = KafkaConfiguration(bootstrapServers: broker.bootstrapServers, topic: Self.topic)
        let producer = try KafkaBus(configuration, logger: quietLog).makeProducer { _ in }
        defer { producer.close() }
        for (key, value) in records {
            let key = Array(#"{"code":"\#(key)"}"#.utf8)
            try producer.send(
                value.map { OutgoingMessage(key: key, headers: [], payload: Array($0.utf8), tag: 0) }
                    ?? OutgoingMessage(nullFor: key, headers: [], tag: 0))
        }
        #expect(producer.flush(timeout: .seconds(10)))
    }

    private func record(_ operation: String, _ code: String, _ name: String) -> (key: String, value: String?) {
        let row = #"{"code":"\#(code)","name":"\#(name)"}"#
        let time = Int64(Date().timeIntervalSince1970 * 1000)
        let rows = operation == "d" ? #""before":\#(row),"after":null"# : #""before":null,"after":\#(row)"#
        return (code, #"{\#(rows),"source":{"connector":"postgresql","ts_ms":\#(time)},"op":"\#(operation)"}"#)
    }

    private func rows(_ store: Store) throws -> [String] {
        try store.database.read { try String.fetchAll($0, sql: "SELECT code || ' ' || name FROM country ORDER BY 1") }
    }

    @Test func anAgentIngestsATopicForAllNodes() async throws {
        let (a, b) = (try store("a"), try store("b"))
        try send([record("r", "ch", "Switzerland"), record("c", "at", "Austria")])
        let agents = [
            try Agent(configuration(a), log: quietLog), try Agent(configuration(b, ingests: false), log: quietLog),
        ]
        try await whileRunning(agents, log: quietLog) {
            for store in [a, b] {
                try await eventually("the rows") { try rows(store) == ["at Austria", "ch Switzerland"] }
            }
            try send([record("u", "ch", "Suisse"), record("d", "at", "Austria"), ("at", nil)])
            for store in [a, b] { try await eventually("the changes") { try rows(store) == ["ch Suisse"] } }
            // A record that can't be merged is shown, and left out by hand.
            try send([("ch", "no JSON"), record("c", "it", "Italy")])
            try await eventually("the problem") { try a.ingestPlaces().first?.problem != nil }
            let findings = try StoreDoctor.examine(path: a.path).filter { $0.check == "ingest" }
            #expect(findings.map(\.level) == [.problem])
            #expect(findings.first?.message.hasPrefix("\(Self.topic)/0/5 can't be merged") ?? false)
            #expect(findings.first?.remedy?.contains("--skip \(Self.topic)/0/5") ?? false)
            #expect(try rows(b) == ["ch Suisse"])
            try a.skipIngested(topic: Self.topic, partition: 0, offset: 5)
            for store in [a, b] {
                try await eventually("the rest") { try rows(store) == ["ch Suisse", "it Italy"] }
            }
        }
        #expect(try StoreDoctor.examine(path: a.path).filter { $0.check == "ingest" }.map(\.level) == [.ok])
        #expect(try StoreDoctor.examine(path: b.path).filter { $0.check == "ingest" }.isEmpty)
    }

    @Test func theDoctorNamesTablesThatCantTakeRowsOfASource() throws {
        let a = try directory.noteStore("a")
        try SyncEngine(path: a.path).close()
        var configuration = IngestConfiguration()
        configuration.topics = [
            TableMapping(topic: "x", table: "note"), TableMapping(topic: "y", table: "missing"),
        ]
        let findings = try IngestDoctor.examine(configuration, store: a.path)
        #expect(findings.map(\.level) == [.problem, .warning])
        #expect(findings.first?.remedy?.contains("--identity note=") ?? false)
        #expect(try IngestDoctor.examine(IngestConfiguration(), store: a.path).isEmpty)
        var whole = self.configuration(a)
        whole.ingest = configuration
        #expect(throws: StoreError.self) { _ = try Agent(whole, log: quietLog) }
    }

    @Test func theDoctorTriesTheRightToReadATopic() throws {
        let a = try store("a")
        let findings = BrokerDoctor.examine(configuration(a), store: a.path, log: quietLog, timeout: .seconds(5))
        let granted = findings.first { $0.check == "rights" }?.message ?? ""
        #expect(granted.contains("Read on topic \(Self.topic)"), "\(findings)")
        #expect(!granted.contains("Write on topic \(Self.topic)"))
        #expect(TopicRights.ingest(topic: "x").description == "Read on topic x")
    }
}
