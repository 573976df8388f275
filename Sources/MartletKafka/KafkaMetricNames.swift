/// The labels of the metrics that ``KafkaBus`` reports when ``KafkaConfiguration/statisticsInterval`` is set.
///
/// All have the dimensions `client` (`producer`, `consumer`) and `topic`; those of a broker also `broker`.
public enum KafkaMetricNames {
    /// Gauge, by broker: 1 while connected, else 0.
    public static let brokerUp = "martlet_kafka_broker_up"
    /// Gauge, by broker: the mean time between a request and its answer.
    public static let brokerRoundTripSeconds = "martlet_kafka_broker_round_trip_seconds"
    /// Counter, by broker: requests that could not be sent.
    public static let brokerSendErrors = "martlet_kafka_broker_send_errors_total"
    /// Counter, by broker: answers that were errors or could not be read.
    public static let brokerReceiveErrors = "martlet_kafka_broker_receive_errors_total"
    /// Counter, by broker: requests sent again.
    public static let brokerRetries = "martlet_kafka_broker_retries_total"
    /// Gauge: messages in the producer, not yet acknowledged.
    public static let queueMessages = "martlet_kafka_queue_messages"
    /// Gauge: bytes of the messages in the producer that are not yet acknowledged.
    public static let queueBytes = "martlet_kafka_queue_bytes"
    /// Gauge, by `partition`: messages behind the published progress.
    public static let consumerLag = "martlet_kafka_consumer_lag"
}
