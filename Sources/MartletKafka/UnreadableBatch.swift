import CRdKafka
package import MartletBus

/// A batch of messages that librdkafka can't parse: it doesn't know the compression, or the batch exceeds
/// `receive.message.max.bytes`, or it is damaged. A fetch from any offset in the batch fails again, and reports where
/// the batch begins. Where it ends has to be searched for.
package struct UnreadableBatch {
    let partition: Int32
    /// The offset of its first message.
    let first: Int64
    let reason: String

    /// Returns whether a fetch that fails with this code will fail each time.
    static func isUnreadable(_ code: rd_kafka_resp_err_t) -> Bool {
        [RD_KAFKA_RESP_ERR__BAD_COMPRESSION, RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED].contains(
            code)
    }

    /// Finds the first offset after the batch.
    ///
    /// Offsets within the batch can't be read, and those after it can. The search doubles its steps and then bisects,
    /// so that it needs only a few fetches even for a batch of millions of messages.
    /// - Parameters:
    ///   - position: an offset in the batch.
    ///   - isWithin: fetches from an offset, and returns whether that offset is still within the batch.
    /// - Returns: nil if the batch can be read after all: it was damaged on its way, or there was no memory for it.
    package static func end(from position: Int64, isWithin: (Int64) throws(BusError) -> Bool) throws(BusError) -> Int64?
    {
        guard try isWithin(position) else { return nil }
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

    /// Returns the message that replaces those of the batch: it has the reason, the offset of the last of them as its
    /// position, and that of the first.
    func message(before next: Int64) -> IncomingMessage {
        var message = IncomingMessage(
            position: PartitionPosition(partition: partition, offset: next - 1), key: [], headers: [], payload: [],
            timestamp: -1, isBrokerTimestamp: false)
        message.batchStart = first
        message.problem =
            """
            The messages of \(next - first) offsets, from \(first) on, can't be read: \(reason). They may be damaged, \
            or exceed receive.message.max.bytes.
            """
        return message
    }
}
