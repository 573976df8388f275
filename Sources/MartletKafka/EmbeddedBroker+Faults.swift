import CRdKafka
public import MartletBus

extension EmbeddedBroker {
    /// A kind of request, identified by its API key in Kafka's protocol.
    public struct Request: Sendable, Hashable {
        public var apiKey: Int16

        public init(apiKey: Int16) {
            self.apiKey = apiKey
        }

        public static let produce = Request(apiKey: 0)
        public static let fetch = Request(apiKey: 1)
        public static let listOffsets = Request(apiKey: 2)
        public static let metadata = Request(apiKey: 3)
        public static let findCoordinator = Request(apiKey: 10)
        public static let initProducerID = Request(apiKey: 22)
    }

    /// Answers the next requests of a kind with these errors, one per request.
    ///
    /// - Parameter codes: error codes of Kafka's protocol, or librdkafka's -195 (`_TRANSPORT`) to cut the connection.
    public func failNext(_ request: Request, with codes: [Int32]) {
        let errors = codes.map { rd_kafka_resp_err_t(rawValue: $0) }
        rd_kafka_mock_push_request_errors_array(cluster, request.apiKey, errors.count, errors)
    }

    /// Delays one broker's next answer to a request of a kind. The request otherwise succeeds.
    public func delayNext(_ request: Request, by duration: Duration, broker: Int32 = 1) throws(BusError) {
        try check(
            martlet_rd_mock_push_error_rtt(
                cluster, broker, request.apiKey, RD_KAFKA_RESP_ERR_NO_ERROR, duration.millisecondsClamped),
            "delay a request")
    }

    /// Clears all errors that have not been answered with yet.
    public func clearErrors(_ request: Request) {
        rd_kafka_mock_clear_request_errors(cluster, request.apiKey)
    }

    /// Cuts the connections of all brokers and refuses new ones, or accepts them again.
    public func setDown(_ isDown: Bool) throws(BusError) {
        try check(
            isDown ? rd_kafka_mock_broker_set_down(cluster, -1) : rd_kafka_mock_broker_set_up(cluster, -1),
            isDown ? "go down" : "come up")
    }

    /// Makes a broker the leader of a partition, or leaves the partition without one.
    public func setLeader(_ broker: Int32?, of topic: String, partition: Int32) throws(BusError) {
        try check(
            rd_kafka_mock_partition_set_leader(cluster, topic, partition, broker ?? -1), "set the leader of a partition"
        )
    }

    /// Delays every answer of every broker.
    public func setRoundTrip(_ duration: Duration) throws(BusError) {
        try check(rd_kafka_mock_broker_set_rtt(cluster, -1, duration.millisecondsClamped), "set the round-trip time")
    }

    /// Answers requests for a topic with an error, or normally again if the code is 0.
    public func setTopicError(_ topic: String, _ code: Int32) {
        rd_kafka_mock_topic_set_error(cluster, topic, rd_kafka_resp_err_t(rawValue: code))
    }
}
