import Metrics
import Synchronization

/// Turns the statistics of one client into metrics.
final class KafkaMetrics: Sendable {
    private let role: String
    private let topic: String
    /// librdkafka's last running totals. Counters need the differences.
    private let totals = Mutex<[String: Int64]>([:])
    /// The brokers that the client was connected to according to its last statistics, or those of the client before it.
    private let connected = Mutex<Set<Int32>>([])
    private let factory: any MetricsFactory

    init(role: String, topic: String, factory: any MetricsFactory) {
        self.factory = factory
        self.role = role
        self.topic = topic
    }

    /// Resets the connection gauges after the client has ended. It reports no more statistics, so its last values would
    /// stay forever.
    func recordEnd() {
        for broker in takeConnected() {
            Gauge(label: KafkaMetricNames.brokerUp, dimensions: dimensions(broker), factory: factory).record(0)
        }
    }

    /// Takes over the connection gauges of a client with the same role, which reports nothing more. This client may end
    /// before its own first statistics.
    func takeOver(_ other: KafkaMetrics) {
        let brokers = other.takeConnected()
        connected.withLock { $0.formUnion(brokers) }
    }

    private func takeConnected() -> Set<Int32> {
        connected.withLock { brokers in
            defer { brokers = [] }
            return brokers
        }
    }

    private var client: [(String, String)] { [("client", role), ("topic", topic)] }

    private func dimensions(_ broker: Int32) -> [(String, String)] { client + [("broker", "\(broker)")] }

    func record(_ statistics: KafkaStatistics) {
        if role == "producer" {
            Gauge(label: KafkaMetricNames.queueMessages, dimensions: client, factory: factory).record(
                statistics.msg_cnt)
            Gauge(label: KafkaMetricNames.queueBytes, dimensions: client, factory: factory).record(statistics.msg_size)
        }
        for broker in statistics.brokers.values where broker.nodeid >= 0 {
            record(broker, dimensions(broker.nodeid))
        }
        for partition in statistics.topics[topic]?.partitions.values.map({ $0 }) ?? []
        where partition.partition >= 0 && partition.consumer_lag_stored >= 0 {
            let dimensions = client + [("partition", "\(partition.partition)")]
            Gauge(label: KafkaMetricNames.consumerLag, dimensions: dimensions, factory: factory)
                .record(partition.consumer_lag_stored)
        }
    }

    private func record(_ broker: KafkaStatistics.Broker, _ dimensions: [(String, String)]) {
        let isUp = broker.state == "UP"
        connected.withLock { brokers in
            if isUp { _ = brokers.insert(broker.nodeid) } else { _ = brokers.remove(broker.nodeid) }
        }
        Gauge(label: KafkaMetricNames.brokerUp, dimensions: dimensions, factory: factory).record(isUp ? 1 : 0)
        Gauge(label: KafkaMetricNames.brokerRoundTripSeconds, dimensions: dimensions, factory: factory)
            .record(Double(broker.rtt.avg) / 1_000_000)
        count(KafkaMetricNames.brokerSendErrors, broker.txerrs, broker.nodeid, dimensions)
        count(KafkaMetricNames.brokerReceiveErrors, broker.rxerrs, broker.nodeid, dimensions)
        count(KafkaMetricNames.brokerRetries, broker.txretries, broker.nodeid, dimensions)
    }

    private func count(_ label: String, _ total: Int64, _ broker: Int32, _ dimensions: [(String, String)]) {
        let difference = totals.withLock { totals in
            defer { totals["\(label)/\(broker)"] = total }
            return total - totals["\(label)/\(broker)", default: 0]
        }
        if difference > 0 { Counter(label: label, dimensions: dimensions, factory: factory).increment(by: difference) }
    }
}
