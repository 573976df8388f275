import CRdKafka
public import Logging
public import MartletSync

/// A Kafka broker inside this process, for development and tests: librdkafka's mock cluster on real TCP sockets.
///
/// It listens on the loopback interface, keeps everything in memory, and forgets it when the last reference to it goes. It keeps at most 5 MB
/// or 100 000 messages a partition, whichever is less, and drops the oldest beyond that, so a slow reader can find its
/// position gone. A fetch that finds nothing is answered only after ``KafkaConfiguration/fetchWaitMax``, also when a
/// message arrives meanwhile: set that low (10 ms) where latency matters. There are no topic settings and no security.
public final class EmbeddedBroker: Sendable {
    private let client: RDClient
    // Safe because the mock cluster's calls go through its own thread, and it is set once and freed in deinit.
    nonisolated(unsafe) let cluster: OpaquePointer

    /// Where to connect.
    public let bootstrapServers: [String]

    /// Starts the broker.
    ///
    /// - Parameters:
    ///   - topics: topics to create at once, with their partition counts.
    ///   - brokerCount: how many brokers the cluster has, each with its own port.
    /// - Throws: ``/MartletSync/BusError`` with code `.other`.
    public init(
        topics: [String: Int] = [:], brokerCount: Int = 1, logger: Logger = Logger(label: "martlet.broker")
    ) throws(BusError) {
        client = try RDClient(
            .producer, properties: [], topic: "none",
            context: RDContext(
                logger: logger, describe: RDErrorDescriber(topic: "", bootstrapServers: ""), metrics: nil))
        guard let cluster = rd_kafka_mock_cluster_new(client.pointer, Int32(brokerCount)) else {
            throw BusError(.other, "the embedded broker could not start", hint: "See the log for the reason")
        }
        self.cluster = cluster
        let servers = rd_kafka_mock_cluster_bootstraps(cluster).map { String(cString: $0) } ?? ""
        bootstrapServers = servers.split(separator: ",").map(String.init)
        for (topic, partitions) in topics {
            try createTopic(topic, partitions: partitions)
        }
    }

    deinit {
        rd_kafka_mock_cluster_destroy(cluster)
    }

    /// Creates a topic.
    ///
    /// - Throws: ``/MartletSync/BusError`` with code `.other` when it exists or the partition count is no good.
    public func createTopic(_ name: String, partitions: Int) throws(BusError) {
        try check(
            rd_kafka_mock_topic_create(cluster, name, Int32(clamping: partitions), 1), "create the topic \(name)")
    }

    func check(_ code: rd_kafka_resp_err_t, _ doing: String) throws(BusError) {
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw BusError(
                .other, "the embedded broker could not \(doing): \(String(cString: rd_kafka_err2str(code)))",
                underlyingCode: code.rawValue)
        }
    }
}
