import MartletSync
import MartletTestSupport
import Metrics
import MetricsTestKit
import Synchronization
import Testing

@testable import MartletKafka

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

    /// The connection may break between the handover to a patient client and that client's first statistics.
    @Test func aClientThatTookOverEndsTheConnectionsOfTheFormerOne() throws {
        let metrics = TestMetrics()
        let bus = try KafkaBus(KafkaConfiguration(bootstrapServers: ["127.0.0.1:1"]))
        let (former, successor) = (context(bus, metrics), context(bus, metrics))
        successor.isSecond.store(true, ordering: .relaxed)
        let statistics = """
            {"msg_cnt": 0, "msg_size": 0, "topics": {}, "brokers": {"localhost:9092/7": {
            "nodeid": 7, "state": "UP", "txerrs": 0, "rxerrs": 0, "txretries": 0, "rtt": {"avg": 0}}}}
            """
        Array(statistics.utf8).withUnsafeBytes { former.recordStatistics($0) }
        func isUp() -> Double? { metrics.recorders.first { $0.label == KafkaMetricNames.brokerUp }?.lastValue }
        successor.takeOver(former)
        former.recordEnd()
        #expect(isUp() == 1)
        successor.recordEnd()
        #expect(isUp() == 0)
    }

    private func context(_ bus: KafkaBus, _ metrics: TestMetrics) -> RDContext {
        RDContext(
            logger: bus.logger, describe: bus.describer(.consumer, role: "consumer"),
            metrics: KafkaMetrics(role: "consumer", topic: bus.topic, factory: metrics))
    }
}
