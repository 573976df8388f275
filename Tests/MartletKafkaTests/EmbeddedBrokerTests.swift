import MartletKafka
import MartletSync
import MartletTestSupport
import Testing

@Suite struct EmbeddedBrokerTests {
    @Test(arguments: BusContract.rules)
    func aBrokerOnAFixedPortKeepsTheContract(_ rule: BusContract.Rule) throws {
        let port = try freePort()
        let broker = try EmbeddedBroker(port: port, topics: ["martlet": 3])
        #expect(broker.bootstrapServers == ["127.0.0.1:\(port)"])
        try rule.check(try KafkaBus(.test(broker)))
    }

    @Test func theBrokerAdvertisesItsFixedPort() throws {
        let port = try freePort()
        let broker = try EmbeddedBroker(port: port, topics: ["martlet": 1])
        let description = try KafkaAdmin(.test(broker)).describeTopic(timeout: BusContract.deadline)
        #expect(description.brokers == [1: "127.0.0.1:\(port)"])
    }

    @Test func clientsFindANewBrokerOnTheSamePort() throws {
        let port = try freePort()
        var broker: EmbeddedBroker? = try EmbeddedBroker(port: port, topics: ["martlet": 1])
        var configuration = KafkaConfiguration(bootstrapServers: ["127.0.0.1:\(port)"])
        configuration.properties["reconnect.backoff.max.ms"] = "100"
        let box = AcknowledgementBox()
        let producer = try KafkaBus(configuration).makeProducer { box.add($0) }
        defer { producer.close() }
        try producer.send(OutgoingMessage(key: [1], headers: [], payload: [1], tag: 1))
        try box.wait(for: 1)
        broker = nil
        try producer.send(OutgoingMessage(key: [1], headers: [], payload: [2], tag: 2))
        broker = try EmbeddedBroker(port: port, topics: ["martlet": 1])
        try box.wait(for: 2)
        _ = broker
    }

    @Test func aPortInUseIsAConfigurationError() throws {
        let port = try freePort()
        let broker = try EmbeddedBroker(port: port)
        let error = #expect(throws: BusError.self) { _ = try EmbeddedBroker(port: port) }
        #expect(error?.code == .configuration)
        #expect(error?.message.contains("\(port)") == true)
        _ = broker
    }

    @Test func theBrokerRefusesASecondTopicOfTheSameName() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        #expect(throws: BusError.self) { try broker.createTopic("martlet", partitions: 1) }
    }

    /// A port that was free a moment ago, below the system's range of ephemeral ports.
    private func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000..<32_000)
            if let broker = try? EmbeddedBroker(port: port) {
                _ = broker
                return port
            }
        }
        throw BusContractError("no free port")
    }
}
