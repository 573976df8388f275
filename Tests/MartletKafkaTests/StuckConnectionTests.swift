import MartletKafka
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

@Suite struct StuckConnectionTests {
    /// The broker's socket is open, and no response ever arrives.
    @Test func p07AStalledConnectionIsReported() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        var configuration = KafkaConfiguration.test(broker)
        configuration.deliveryTimeout = .milliseconds(200)
        // The default is a minute.
        configuration.properties["socket.timeout.ms"] = "1000"
        let directory = try TemporaryDirectory()
        let node = try TestNode(
            "a", bus: try KafkaBus(configuration), directory: directory,
            schema: "CREATE TABLE item(id TEXT PRIMARY KEY)",
            attach: .init(), clock: TestClock())
        try node.write("INSERT INTO item VALUES ('a')")
        try step(node, until: "the first transaction has gone through") {
            try node.engine.confirmed() == 1 && node.publisher.currentProgress.acknowledged == 1
                && node.publisher.currentProgress.problem == nil && node.consumer.currentProgress.problem == nil
        }
        try broker.setRoundTrip(.seconds(1000))
        try node.write("INSERT INTO item VALUES ('b')")
        try step(node, until: "publisher and consumer say that nothing moves") {
            node.publisher.currentProgress.problem != nil && node.consumer.currentProgress.problem != nil
        }
        #expect(node.publisher.currentProgress.acknowledged == 1)
        try broker.setRoundTrip(.zero)
        try step(node, until: "they go on") {
            try node.engine.confirmed() == 2 && node.publisher.currentProgress.problem == nil
                && node.consumer.currentProgress.problem == nil
        }
    }

    private func step(_ node: TestNode, until what: String, _ isDone: () throws -> Bool) throws {
        try BusSession.waitUntil(what) { _ in
            node.publisher.step()
            node.consumer.step(timeout: .milliseconds(20))
            return try isDone()
        }
    }
}
