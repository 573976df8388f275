import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

@Suite struct KafkaBusTests {
    @Test func anUnreachableBrokerIsReportedWithAHint() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        try broker.setDown(true)
        let bus = try KafkaBus(.test(broker))
        let error = #expect(throws: BusError.self) {
            try bus.makeConsumer().partitionCount(timeout: .milliseconds(300))
        }
        #expect(error?.code == .unreachable)
        #expect(error?.isRetriable == true)
        #expect(error?.hint.contains(broker.bootstrapServers[0]) == true)
    }

    @Test func anUnknownTopicIsReportedWithTheCommandThatCreatesIt() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        // Kafka's UNKNOWN_TOPIC_OR_PARTITION.
        broker.setTopicError("martlet", 3)
        let error = #expect(throws: BusError.self) {
            try KafkaBus(.test(broker)).makeConsumer().partitionCount(timeout: BusContract.deadline)
        }
        #expect(error?.code == .unknownTopic)
        #expect(error?.hint.contains("martlet topic create martlet") == true)
    }

    @Test func aDeniedTopicIsUnauthorized() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        // Kafka's TOPIC_AUTHORIZATION_FAILED.
        broker.setTopicError("martlet", 29)
        let error = #expect(throws: BusError.self) {
            try KafkaBus(.test(broker)).makeConsumer().partitionCount(timeout: BusContract.deadline)
        }
        #expect(error?.code == .unauthorized)
    }

    @Test func theInitializerThrowsProblemsOfTheConfiguration() {
        var configuration = KafkaConfiguration(bootstrapServers: [])
        configuration.topic = "a b"
        let error = #expect(throws: BusError.self) { _ = try KafkaBus(configuration) }
        #expect(error?.code == .configuration)
        #expect(error?.message.contains("bootstrapServers") == true)
        #expect(error?.message.contains("a b") == true)
    }

    @Test func aCombinationThatLibrdkafkaRefusesThrowsWithItsReason() throws {
        var configuration = KafkaConfiguration()
        // The value is valid, but an idempotent producer has at most 5 requests in flight.
        configuration.properties["max.in.flight"] = "6"
        #expect(configuration.validate().isEmpty)
        let error = #expect(throws: BusError.self) { try KafkaBus(configuration).makeProducer { _ in } }
        #expect(error?.code == .configuration)
        #expect(error?.message.contains("max.in.flight") == true)
    }
}
