import CRdKafka
public import Logging
public import MartletBus

/// A Kafka broker inside this process, for development and tests: librdkafka's mock cluster on real TCP sockets.
///
/// It listens on the loopback interface, keeps everything in memory, and discards it when the last reference to it
/// goes. It differs from a real broker as follows:
/// - It keeps about 5 MB of compressed batches per partition and drops the oldest beyond that, so a slow reader may
///   find that its position no longer exists.
/// - A fetch that finds nothing is answered only after ``KafkaConfiguration/fetchWaitMax``, even if a message arrives
///   meanwhile. Where latency matters, set that low (10 ms), and set ``KafkaConfiguration/idleFetchWaitMax`` to zero.
///   On a fixed port this is not necessary: the forwarder makes sure that no fetch is held for longer than 20 ms.
/// - Any topic that a client asks for is created, with four partitions.
/// - It does not check the sequence numbers of idempotent producers. So after an error of ``failNext(_:with:)`` or a
///   cut connection, messages can be duplicated or, with more than one request in flight, be missing although they were
///   acknowledged.
/// - It has no topic settings, administration or security, and only producer timestamps.
public final class EmbeddedBroker: Sendable {
    private let client: RDClient
    // Safe because the mock cluster's calls go through its own thread, and it is set once and freed in deinit.
    nonisolated(unsafe) let cluster: OpaquePointer
    private let forwarder: PortForwarder?

    /// The addresses to connect to.
    public let bootstrapServers: [String]

    /// Starts the broker.
    ///
    /// - Parameters:
    ///   - port: the port to listen on. Default: zero, a free port. librdkafka's mock cluster always takes a free port;
    ///     with a fixed port, connections pass through a forwarder that replaces the port in the brokers' addresses
    ///     with its own.
    ///   - topics: topics to create at start, with their partition counts.
    ///   - brokerCount: the number of brokers in the cluster, each with its own port. A fixed port allows only one.
    /// - Throws: ``/MartletBus/BusError`` with code `.configuration` if the port is not available or the broker count
    ///   is not allowed, else `.other`.
    public init(
        port: UInt16 = 0, topics: [String: Int] = [:], brokerCount: Int = 1,
        logger: Logger = Logger(label: "martlet.broker")
    ) throws(BusError) {
        guard brokerCount > 0, port == 0 || brokerCount == 1 else {
            throw BusError(
                .configuration, "\(brokerCount) embedded brokers can't share port \(port)", hint: "Use one broker")
        }
        client = try RDClient(
            .producer, properties: [], topic: "none",
            context: RDContext(
                logger: logger, describe: RDErrorDescriber(topic: "", bootstrapServers: ""), metrics: nil))
        guard let cluster = rd_kafka_mock_cluster_new(client.pointer, Int32(clamping: brokerCount)) else {
            throw BusError(.other, "the embedded broker could not start", hint: "Look for the reason in the log")
        }
        self.cluster = cluster
        let servers = rd_kafka_mock_cluster_bootstraps(cluster).map { String(cString: $0) } ?? ""
        if port == 0 {
            forwarder = nil
            bootstrapServers = servers.split(separator: ",").map(String.init)
        } else {
            do throws(BusError) {
                guard let target = servers.split(separator: ":").last.flatMap({ UInt16($0) }) else {
                    throw BusError(.other, "the embedded broker has no port in \(servers)")
                }
                forwarder = try PortForwarder(from: port, to: target)
            } catch {
                // `deinit` runs only once all stored properties are set. Before that, the cluster must be destroyed by
                // hand.
                rd_kafka_mock_cluster_destroy(cluster)
                throw error
            }
            bootstrapServers = ["127.0.0.1:\(port)"]
        }
        for (topic, partitions) in topics {
            try createTopic(topic, partitions: partitions)
        }
    }

    deinit {
        forwarder?.close()
        rd_kafka_mock_cluster_destroy(cluster)
    }

    /// Creates a topic.
    ///
    /// - Throws: ``/MartletBus/BusError`` with code `.other` if the topic exists or the partition count is invalid.
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
