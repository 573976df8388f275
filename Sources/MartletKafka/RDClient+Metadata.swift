import CRdKafka
import MartletBus

extension RDClient {
    /// A topic according to the cluster's metadata.
    struct TopicMetadata {
        struct Partition {
            var id: Int32
            var leader: Int32
            var replicas: [Int32]
            var inSyncReplicas: [Int32]
        }

        var partitions: [Partition]
        /// Broker ID to `host:port`.
        var brokers: [Int32: String]
    }

    /// Requests the metadata of one topic. Blocks for at most `timeout`.
    ///
    /// - Throws: ``/MartletBus/BusError`` with code `.unreachable`, `.unknownTopic`, `.unauthorized`.
    func metadata(topic: String, timeout: Duration) throws(BusError) -> TopicMetadata {
        let doing = "read the partitions of topic \(topic)"
        guard let handle = rd_kafka_topic_new(pointer, topic, nil) else {
            throw context.describe.error(RD_KAFKA_RESP_ERR__INVALID_ARG, doing: doing)
        }
        defer { rd_kafka_topic_destroy(handle) }
        var answer: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(pointer, 0, handle, &answer, timeout.millisecondsClamped)
        defer { if let answer { rd_kafka_metadata_destroy(answer) } }
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = answer?.pointee else {
            throw reason(doing) ?? context.describe.error(code, doing: doing)
        }
        _ = context.takeHangUp()
        guard metadata.topic_cnt > 0, let found = metadata.topics?.pointee else {
            throw context.describe.of(topic).error(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, doing: doing)
        }
        // A partition that has no leader at the moment still counts.
        guard found.err == RD_KAFKA_RESP_ERR_NO_ERROR || found.err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE else {
            throw context.describe.of(topic).error(found.err, doing: doing)
        }
        let partitions = UnsafeBufferPointer(start: found.partitions, count: Int(found.partition_cnt)).map {
            TopicMetadata.Partition(
                id: $0.id, leader: $0.leader,
                replicas: Array(UnsafeBufferPointer(start: $0.replicas, count: Int($0.replica_cnt))),
                inSyncReplicas: Array(UnsafeBufferPointer(start: $0.isrs, count: Int($0.isr_cnt))))
        }
        guard !partitions.isEmpty else {
            throw context.describe.of(topic).error(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, doing: doing)
        }
        var brokers: [Int32: String] = [:]
        for broker in UnsafeBufferPointer(start: metadata.brokers, count: Int(metadata.broker_cnt)) {
            brokers[broker.id] = broker.host.map { "\(String(cString: $0)):\(broker.port)" } ?? ""
        }
        return TopicMetadata(partitions: partitions.sorted { $0.id < $1.id }, brokers: brokers)
    }

    /// Returns why no broker answered. librdkafka reports this separately from the call that fails or times out.
    private func reason(_ doing: String) -> BusError? {
        serve()
        let failures = context.takeFailures()
        if let refusal = failures.first(where: { context.describe.classify($0.code).code == .unauthorized }) {
            return context.describe.error(refusal.code, doing: "log in to the brokers", reason: refusal.reason)
        }
        // "All brokers are down" says less than the reason why one of them is.
        let failure = failures.last { $0.code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !$0.reason.isEmpty }
        let hangUp = context.takeHangUp().map { RDContext.Failure(code: RD_KAFKA_RESP_ERR__TRANSPORT, reason: $0) }
        return (failure ?? hangUp).map {
            context.describe.error($0.code, doing: doing, reason: context.describe.explained($0.reason))
        }
    }
}
