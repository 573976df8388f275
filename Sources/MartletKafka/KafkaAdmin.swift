import CRdKafka
public import Logging
public import MartletBus

/// Creates and describes topics. Every call opens its own connection, and blocks.
public struct KafkaAdmin: Sendable {
    let bus: KafkaBus

    /// - Throws: ``/MartletBus/BusError`` with code `.configuration`, like `KafkaBus.init`.
    public init(_ configuration: KafkaConfiguration, logger: Logger = Logger(label: "martlet.kafka")) throws(BusError) {
        bus = try KafkaBus(configuration, logger: logger)
    }

    /// Creates a topic, and waits until the cluster knows of it. Blocks for at most `timeout`.
    ///
    /// - Throws: ``/MartletBus/BusError`` with code `.unreachable`, `.unauthorized`, `.configuration` (a setting or
    ///   count that the broker rejects), `.alreadyExists` or `.other`.
    public func createTopic(
        _ specification: KafkaTopicSpecification, timeout: Duration = .seconds(30)
    ) throws(BusError) {
        let doing = "create the topic \(specification.name)"
        let client = try bus.makeClient(.consumer, role: "admin")
        do throws(BusError) {
            try createTopic(specification, client, timeout: timeout, doing)
        } catch {
            guard error.underlyingCode == RD_KAFKA_RESP_ERR__TIMED_OUT.rawValue else { throw error }
            var error = error
            error.hint +=
                """
                . The embedded broker (`martlet broker`) does not support this request: create the topic by starting \
                it with --topic \(specification.name)=\(specification.partitionCount).
                """
            throw error
        }
    }

    /// - Parameter isTrial: true to let the broker only validate the request.
    func createTopic(
        _ specification: KafkaTopicSpecification, _ client: RDClient, timeout: Duration, _ doing: String,
        isTrial: Bool = false
    ) throws(BusError) {
        var topic = try newTopic(specification, client, doing)
        defer { rd_kafka_NewTopic_destroy(topic) }
        try client.administer(RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout: timeout, doing: doing, isTrial: isTrial) {
            options, queue in
            withUnsafeMutablePointer(to: &topic) {
                rd_kafka_CreateTopics(client.pointer, $0, 1, options, queue)
            }
        } read: { event throws(BusError) in
            var count = 0
            let results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
            guard count == 1, let result = results?[0] else {
                throw BusError(.other, "could not \(doing): the broker's response does not mention it")
            }
            let code = rd_kafka_topic_result_error(result)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                let reason = rd_kafka_topic_result_error_string(result).map { String(cString: $0) }
                throw client.context.describe.error(
                    code, doing: doing, reason: reason, lacking: KafkaRight(.create, .topic(specification.name)))
            }
        }
    }

    /// Returns whether the cluster has a topic. Makes one request, and blocks for at most `timeout`.
    ///
    /// - Throws: ``/MartletBus/BusError`` with code `.unreachable` or `.unauthorized`.
    package func hasTopic(_ name: String, timeout: Duration = .seconds(10)) throws(BusError) -> Bool {
        let client = try bus.makeClient(.consumer, role: "admin")
        do throws(BusError) {
            _ = try client.metadata(topic: name, timeout: timeout)
            return true
        } catch {
            guard error.code == .unknownTopic else { throw error }
            return false
        }
    }

    /// Describes a topic. Makes one request per partition besides those for the topic, and blocks for at most `timeout`
    /// per request.
    ///
    /// - Parameter name: the topic. Default: the topic of the configuration.
    /// - Throws: ``/MartletBus/BusError`` with code `.unreachable`, `.unauthorized` or `.unknownTopic`.
    public func describeTopic(
        _ name: String? = nil, timeout: Duration = .seconds(10)
    ) throws(BusError) -> KafkaTopicDescription {
        let name = name ?? bus.topic
        let client = try bus.makeClient(.consumer, role: "admin")
        let metadata = try client.metadata(topic: name, timeout: timeout)
        let partitions = metadata.partitions.map { partition in
            return KafkaTopicDescription.Partition(
                id: partition.id, leader: partition.leader, replicas: partition.replicas,
                inSyncReplicas: partition.inSyncReplicas,
                watermarks: try? client.watermarks(topic: name, partition: partition.id, timeout: timeout).get())
        }
        return KafkaTopicDescription(
            name: name, partitions: partitions, brokers: metadata.brokers,
            // If the broker doesn't report the settings, or not to this user, the rest is still returned.
            settings: try? client.settings(ofTopic: name, timeout: min(timeout, .seconds(5))))
    }

    private func newTopic(
        _ specification: KafkaTopicSpecification, _ client: RDClient, _ doing: String
    ) throws(BusError) -> OpaquePointer? {
        guard specification.partitionCount > 0, specification.replicationFactor ?? 1 > 0 else {
            throw client.context.describe.error(
                RD_KAFKA_RESP_ERR__INVALID_ARG, doing: doing, reason: "a topic has at least one partition and replica")
        }
        var reason = ""
        let topic = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            buffer.initialize(repeating: 0)
            let topic = rd_kafka_NewTopic_new(
                specification.name, Int32(clamping: specification.partitionCount),
                Int32(clamping: specification.replicationFactor ?? -1), buffer.baseAddress, buffer.count)
            reason = buffer.baseAddress.map { String(cString: $0) } ?? ""
            return topic
        }
        guard let topic else {
            throw client.context.describe.error(RD_KAFKA_RESP_ERR__INVALID_ARG, doing: doing, reason: reason)
        }
        for (name, value) in specification.settings.sorted(by: { $0.key < $1.key }) {
            let code = rd_kafka_NewTopic_set_config(topic, name, value)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                rd_kafka_NewTopic_destroy(topic)
                throw client.context.describe.error(code, doing: doing, reason: "setting \(name) was refused")
            }
        }
        return topic
    }
}
