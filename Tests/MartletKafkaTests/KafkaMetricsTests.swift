import MartletKafka
import MartletSync
import MartletTestSupport
import Metrics
import MetricsTestKit
import Testing

/// A process sets up its metrics system once, so that only this suite does it.
@Suite struct KafkaMetricsTests {
    private static let metrics: TestMetrics = {
        let metrics = TestMetrics()
        MetricsSystem.bootstrap(metrics)
        return metrics
    }()

    @Test func statisticsBecomeMetrics() throws {
        let metrics = Self.metrics
        let broker = try EmbeddedBroker(topics: ["metered": 1])
        var configuration = KafkaConfiguration.test(broker)
        configuration.topic = "metered"
        configuration.statisticsInterval = .milliseconds(20)
        let bus = try KafkaBus(configuration)
        try BusSession.send(BusSession.messages(keys: 1, each: 5), to: bus)
        let consumer = try bus.makeConsumer()
        defer { consumer.close() }
        try consumer.assign([.init(partition: 0, offset: 0)])
        func isUp() -> Double? {
            metrics.recorders.first {
                $0.label == KafkaMetricNames.brokerUp && $0.dimensions.contains { $0 == ("client", "consumer") }
                    && $0.dimensions.contains { $0 == ("topic", "metered") }
            }?.lastValue
        }
        try BusSession.waitUntil("metrics") { _ in
            _ = try consumer.poll(maxCount: 10, timeout: .milliseconds(20))
            consumer.publishProgress([.init(partition: 0, offset: 2)], of: "node")
            let lag = metrics.recorders.first { $0.label == KafkaMetricNames.consumerLag }
            return lag?.lastValue == 3 && isUp() == 1
        }
        // A closed client reports nothing more, so that its last values must not remain.
        consumer.close()
        #expect(isUp() == 0)
    }
}
