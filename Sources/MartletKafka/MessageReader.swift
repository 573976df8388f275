import CRdKafka
import MartletBus

/// Copies librdkafka's messages, and separates messages from events.
struct MessageReader {
    let describe: RDErrorDescriber
    private let maxPayloadBytes: Int
    /// The batches that could not be parsed.
    private(set) var unreadable: [UnreadableBatch] = []
    /// The previous key. Consecutive messages of one origin share it, so it is not copied for each.
    private var lastKey: [UInt8] = []

    init(describe: RDErrorDescriber, maxPayloadBytes: Int) {
        self.describe = describe
        self.maxPayloadBytes = maxPayloadBytes
    }

    /// - Parameter message: a message, from which everything needed is copied.
    mutating func read(_ message: UnsafePointer<rd_kafka_message_t>, into batch: inout ConsumerBatch) {
        let value = message.pointee
        if value.err == RD_KAFKA_RESP_ERR_NO_ERROR {
            guard IncomingMessage.offsets.contains(value.offset) else {
                return batch.events.append(
                    .error(BusError(.other, "the broker returned a message at the impossible offset \(value.offset)")))
            }
            batch.messages.append(incoming(message))
        } else {
            let reason = rd_kafka_message_errstr(message).map { String(cString: $0) } ?? ""
            if UnreadableBatch.isUnreadable(value.err), value.partition >= 0, value.offset >= 0 {
                unreadable.append(
                    UnreadableBatch(partition: value.partition, first: value.offset, reason: reason))
                return
            }
            batch.events.append(event(value.err, partition: value.partition, offset: value.offset, reason: reason))
        }
    }

    func event(_ failure: RDContext.Failure) -> ConsumerEvent {
        event(failure.code, partition: -1, offset: -1, reason: failure.reason)
    }

    private func event(
        _ code: rd_kafka_resp_err_t, partition: Int32, offset: Int64, reason: String
    ) -> ConsumerEvent {
        switch code {
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
            return .endOfPartition(PartitionPosition(partition: partition, offset: offset.asOffset))
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
            return .offsetOutOfRange(partition: partition)
        default:
            let error = describe.error(code, doing: "read", reason: reason)
            return error.code == .unreachable ? .disconnected(reason: reason) : .error(error)
        }
    }

    private mutating func incoming(_ message: UnsafePointer<rd_kafka_message_t>) -> IncomingMessage {
        let value = message.pointee
        var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let timestamp = rd_kafka_message_timestamp(message, &kind)
        let key = UnsafeRawBufferPointer(start: value.key, count: value.key_len)
        if !lastKey.elementsEqual(key) { lastKey = Array(key) }
        var incoming = IncomingMessage(
            position: PartitionPosition(partition: value.partition, offset: value.offset), key: lastKey,
            headers: headers(message), payload: [], timestamp: timestamp,
            isBrokerTimestamp: kind == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)
        incoming.isNull = value.payload == nil
        incoming.take(UnsafeRawBufferPointer(start: value.payload, count: value.len), limit: maxPayloadBytes)
        return incoming
    }

    private func headers(_ message: UnsafePointer<rd_kafka_message_t>) -> [MessageHeader] {
        var list: OpaquePointer?
        guard rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR else { return [] }
        let count = rd_kafka_header_cnt(list)
        var headers: [MessageHeader] = []
        headers.reserveCapacity(count)
        for index in 0..<count {
            var (name, bytes, size): (UnsafePointer<CChar>?, UnsafeRawPointer?, Int) = (nil, nil, 0)
            guard rd_kafka_header_get_all(list, index, &name, &bytes, &size) == RD_KAFKA_RESP_ERR_NO_ERROR, let name
            else { break }
            headers.append(
                MessageHeader(String(cString: name), Array(UnsafeRawBufferPointer(start: bytes, count: size))))
        }
        return headers
    }
}

extension Int64 {
    /// The value, clamped to the offsets that a log can reach.
    var asOffset: Int64 {
        Swift.min(Swift.max(self, IncomingMessage.offsets.lowerBound), IncomingMessage.offsets.upperBound)
    }
}
