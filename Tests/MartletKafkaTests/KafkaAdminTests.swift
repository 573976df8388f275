import Foundation
import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

/// `MARTLET_TEST_BOOTSTRAP=host:port` names a real broker, for tests that the embedded one can't run.
private let realBroker = ProcessInfo.processInfo.environment["MARTLET_TEST_BOOTSTRAP"]

@Suite struct KafkaAdminTests {
    @Test func describeTopicReturnsPartitionsAndBrokers() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 3])
        try BusSession.send(BusSession.messages(keys: 1, each: 4), to: KafkaBus(.test(broker)))
        let description = try KafkaAdmin(.test(broker)).describeTopic(timeout: BusContract.deadline)
        #expect(description.name == "martlet")
        #expect(description.partitions.map(\.id) == [0, 1, 2])
        #expect(description.partitions.allSatisfy { $0.leader == 1 && $0.replicas == [1] && $0.inSyncReplicas == [1] })
        #expect(description.partitions.compactMap { $0.watermarks?.high }.reduce(0, +) == 4)
        #expect(description.brokers == [1: broker.bootstrapServers[0]])
        // The embedded broker doesn't report settings.
        #expect(description.settings == nil)
    }

    /// Not by asking for settings, for which the embedded broker lets callers wait.
    @Test func aTopicThatIsThereIsFound() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 3])
        let admin = try KafkaAdmin(.test(broker))
        #expect(try admin.hasTopic("martlet", timeout: BusContract.deadline))
        var nowhere = KafkaConfiguration.test(broker)
        nowhere.bootstrapServers = ["127.0.0.1:1"]
        let error = #expect(throws: BusError.self) {
            _ = try KafkaAdmin(nowhere).hasTopic("martlet", timeout: .seconds(1))
        }
        #expect(error?.code == .unreachable)
    }

    @Test func createTopicFailsOnABrokerThatCannotCreateTopics() throws {
        let broker = try EmbeddedBroker()
        let admin = try KafkaAdmin(.test(broker))
        let error = #expect(throws: BusError.self) {
            try admin.createTopic(KafkaTopicSpecification(name: "t", partitionCount: 1), timeout: .seconds(1))
        }
        #expect(error?.message.contains("create the topic t") == true)
    }

    @Test func createTopicRefusesInvalidCounts() throws {
        let broker = try EmbeddedBroker()
        let admin = try KafkaAdmin(.test(broker))
        for specification in [
            KafkaTopicSpecification(name: "t", partitionCount: 0),
            KafkaTopicSpecification(name: "t", partitionCount: 1, replicationFactor: 0),
        ] {
            let error = #expect(throws: BusError.self) { try admin.createTopic(specification, timeout: .seconds(1)) }
            #expect(error?.code == .configuration, "\(specification)")
        }
    }

    @Test(.enabled(if: realBroker != nil, "MARTLET_TEST_BOOTSTRAP is not set"))
    func createTopicCreatesATopicOnARealBroker() throws {
        let configuration = try configurationOfRealBroker()
        let admin = try KafkaAdmin(configuration)
        var specification = KafkaTopicSpecification(name: configuration.topic, partitionCount: 3)
        specification.settings["retention.ms"] = "1209600000"
        #expect(try !admin.hasTopic(configuration.topic))
        try admin.createTopic(specification)
        #expect(try admin.hasTopic(configuration.topic))
        let description = try admin.describeTopic()
        #expect(description.partitions.count == 3)
        let settings = try #require(description.settings, "the broker tells no settings")
        #expect(settings["retention.ms"] == "1209600000")
        let error = #expect(throws: BusError.self) { try admin.createTopic(specification) }
        #expect(error?.code == .alreadyExists)
        #expect(error?.message.contains(configuration.topic) == true)
    }

    /// Kafka gives `read_committed` readers nothing behind an open transaction.
    @Test(.enabled(if: realBroker != nil, "MARTLET_TEST_BOOTSTRAP is not set"))
    func p163AThirdPartysOpenTransactionBlocksNoReader() throws {
        let configuration = try configurationOfRealBroker()
        try KafkaAdmin(configuration)
            .createTopic(KafkaTopicSpecification(name: configuration.topic, partitionCount: 1))
        let stranger = try OpenTransaction(try #require(realBroker), topic: configuration.topic)
        defer { stranger.close() }
        let bus = try KafkaBus(configuration)
        try BusSession.send(BusSession.messages(keys: 1, each: 3), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([PartitionPosition(partition: 0, offset: 0)])
        #expect(try BusSession.read(consumer, count: 4).map(\.position.offset) == [0, 1, 2, 3])
        #expect(try consumer.watermarks(partition: 0, timeout: BusContract.deadline).high == 4)
    }

    @Test(.enabled(if: realBroker != nil, "MARTLET_TEST_BOOTSTRAP is not set"), arguments: BusContract.rules)
    func realBrokerKeepsTheContract(_ rule: BusContract.Rule) throws {
        let configuration = try configurationOfRealBroker()
        try KafkaAdmin(configuration)
            .createTopic(KafkaTopicSpecification(name: configuration.topic, partitionCount: 3))
        try rule.check(try KafkaBus(configuration))
    }

    @Test(.enabled(if: realBroker != nil, "MARTLET_TEST_BOOTSTRAP is not set"))
    func anUnknownTopicOnARealBrokerIsReported() throws {
        let configuration = try configurationOfRealBroker()
        let error = #expect(throws: BusError.self) {
            try KafkaBus(configuration).makeConsumer().partitionCount(timeout: BusContract.deadline)
        }
        #expect(error?.code == .unknownTopic)
    }

    private func configurationOfRealBroker() throws -> KafkaConfiguration {
        KafkaConfiguration(
            bootstrapServers: [try #require(realBroker)], topic: "martlet-test-\(UInt64.random(in: 0 ... .max))")
    }
}
