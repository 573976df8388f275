import CRdKafka
import MartletBus

extension RDClient {
    /// Runs one request of the admin API: `start` sends it, and `read` gets its answer, which is freed afterwards.
    ///
    /// Blocks for at most `timeout` and one more second, within which librdkafka reports its own timeout.
    ///
    /// - Parameter isTrial: true to let the broker only validate the request.
    func administer<Answer>(
        _ operation: rd_kafka_admin_op_t, timeout: Duration, doing: String, isTrial: Bool = false,
        start: (_ options: OpaquePointer?, _ queue: OpaquePointer?) -> Void,
        read: (_ event: OpaquePointer) throws(BusError) -> Answer
    ) throws(BusError) -> Answer {
        let milliseconds = max(1, min(timeout.millisecondsClamped, 3_600_000))
        let options = rd_kafka_AdminOptions_new(pointer, operation)
        defer { rd_kafka_AdminOptions_destroy(options) }
        rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, nil, 0)
        if operation == RD_KAFKA_ADMIN_OP_CREATETOPICS {
            // How long the broker waits until the whole cluster knows of the topic.
            rd_kafka_AdminOptions_set_operation_timeout(options, milliseconds, nil, 0)
        }
        if isTrial { rd_kafka_AdminOptions_set_validate_only(options, 1, nil, 0) }
        let answers = rd_kafka_queue_new(pointer)
        defer { rd_kafka_queue_destroy(answers) }
        start(options, answers)
        guard let event = rd_kafka_queue_poll(answers, milliseconds + 1_000) else {
            throw context.describe.error(RD_KAFKA_RESP_ERR__TIMED_OUT, doing: doing)
        }
        defer { rd_kafka_event_destroy(event) }
        let code = rd_kafka_event_error(event)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            let reason = rd_kafka_event_error_string(event).map { String(cString: $0) }
            throw context.describe.error(code, doing: doing, reason: reason)
        }
        return try read(event)
    }

    /// Reads a topic's settings, without sensitive ones.
    func settings(ofTopic name: String, timeout: Duration) throws(BusError) -> [String: String] {
        let doing = "read the settings of topic \(name)"
        var resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name)
        guard resource != nil else { throw context.describe.error(RD_KAFKA_RESP_ERR__INVALID_ARG, doing: doing) }
        defer { rd_kafka_ConfigResource_destroy(resource) }
        return try administer(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout: timeout, doing: doing) { options, queue in
            withUnsafeMutablePointer(to: &resource) {
                rd_kafka_DescribeConfigs(pointer, $0, 1, options, queue)
            }
        } read: { event throws(BusError) in
            var count = 0
            let result = rd_kafka_event_DescribeConfigs_result(event)
            guard let answer = rd_kafka_DescribeConfigs_result_resources(result, &count)?[0], count == 1 else {
                throw BusError(.other, "could not \(doing): the broker's response does not mention it")
            }
            let code = rd_kafka_ConfigResource_error(answer)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                throw context.describe.error(code, doing: doing, lacking: KafkaRight(.describeConfigs, .topic(name)))
            }
            let entries = rd_kafka_ConfigResource_configs(answer, &count)
            var settings: [String: String] = [:]
            for entry in UnsafeBufferPointer(start: entries, count: count) {
                guard let entry, rd_kafka_ConfigEntry_is_sensitive(entry) == 0,
                    let name = rd_kafka_ConfigEntry_name(entry), let value = rd_kafka_ConfigEntry_value(entry)
                else { continue }
                settings[String(cString: name)] = String(cString: value)
            }
            return settings
        }
    }
}
