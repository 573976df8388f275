import CRdKafka
import MartletBus

extension RDClient {
    /// Asks the broker for the first offset of a partition and the one after its last.
    ///
    /// Doesn't use `rd_kafka_query_watermark_offsets`: in librdkafka 2.0.2, that function never returns if the broker
    /// goes away during the request, whatever its timeout. This once kept an agent from stopping.
    ///
    /// Blocks for at most `timeout`.
    func watermarks(topic: String, partition: Int32, timeout: Duration) -> Result<Watermarks, RDResponseError> {
        var remaining = timeout
        let low = offset(Int64(RD_KAFKA_OFFSET_BEGINNING), topic, partition, &remaining)
        guard case .success(let low) = low else { return low.map { _ in Watermarks(low: 0, high: 0) } }
        return offset(Int64(RD_KAFKA_OFFSET_END), topic, partition, &remaining).map { Watermarks(low: low, high: $0) }
    }

    /// Returns the offset after the last message of a partition, as the broker last reported it with fetched messages.
    /// Makes no request.
    ///
    /// - Parameter partition: a partition of the client's topic.
    func knownEnd(of partition: Int32) -> Int64? {
        guard let topic, let name = rd_kafka_topic_name(topic) else { return nil }
        var (low, high): (Int64, Int64) = (-1, -1)
        let code = rd_kafka_get_watermark_offsets(pointer, name, partition, &low, &high)
        return code == RD_KAFKA_RESP_ERR_NO_ERROR && high >= 0 ? high : nil
    }

    /// Asks the broker for one offset: -2 for the beginning and -1 for the end, as in Kafka's ListOffsets request.
    private func offset(
        _ place: Int64, _ topic: String, _ partition: Int32, _ remaining: inout Duration
    ) -> Result<Int64, RDResponseError> {
        let began = ContinuousClock.now
        defer { remaining = max(.zero, remaining - (ContinuousClock.now - began)) }
        let list = rd_kafka_topic_partition_list_new(1)
        defer { rd_kafka_topic_partition_list_destroy(list) }
        guard let list, let entry = rd_kafka_topic_partition_list_add(list, topic, partition) else {
            return .failure(RDResponseError(code: RD_KAFKA_RESP_ERR__FAIL))
        }
        entry.pointee.offset = place
        let code = rd_kafka_offsets_for_times(pointer, list, remaining.millisecondsClamped)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return .failure(RDResponseError(code: code)) }
        guard entry.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
            return .failure(RDResponseError(code: entry.pointee.err))
        }
        return .success(entry.pointee.offset)
    }
}

/// An error code of librdkafka that has no description yet.
struct RDResponseError: Error {
    var code: rd_kafka_resp_err_t
}
