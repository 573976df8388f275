import CRdKafka
import MartletBus

/// A batch of messages that librdkafka can't take apart: it does not know how it is compressed, or it comes to more
/// than `receive.message.max.bytes`, or it is damaged. A fetch from any offset in it fails again, and says where it
/// begins; where it ends is to be found.
struct UnreadableBatch {
    let partition: Int32
    /// The offset of its first message.
    let first: Int64
    let reason: String

    /// Whether a fetch that ends so will do so each time.
    static func isUnreadable(_ code: rd_kafka_resp_err_t) -> Bool {
        [RD_KAFKA_RESP_ERR__BAD_COMPRESSION, RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED].contains(
            code)
    }

    /// Finds the first offset after the batch.
    ///
    /// Offsets within it can't be read, and those after it can: with steps that double, and then by halves, in a few
    /// fetches also where it has millions of messages.
    /// - Parameters:
    ///   - position: an offset in it.
    ///   - isWithin: fetches from an offset, and says whether that is still within the batch.
    static func end(from position: Int64, isWithin: (Int64) throws(BusError) -> Bool) throws(BusError) -> Int64 {
        var low = position
        var step: Int64 = 1
        while try isWithin(low + step) {
            low += step
            step *= 2
        }
        var high = low + step
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if try isWithin(middle) { low = middle } else { high = middle }
        }
        return high
    }

    /// What takes the place of its messages: one that says why, at the offset of the last of them.
    func message(before next: Int64) -> IncomingMessage {
        var message = IncomingMessage(
            position: PartitionPosition(partition: partition, offset: next - 1), key: [], headers: [], payload: [],
            timestamp: -1, isBrokerTimestamp: false)
        message.problem =
            """
            The messages of \(next - first) offsets, from \(first) on, can't be read: \(reason). They may be damaged, \
            or exceed receive.message.max.bytes.
            """
        return message
    }
}
