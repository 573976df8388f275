import CRdKafka
import Logging
import MartletSync
import Synchronization

/// The reading end of a ``KafkaBus``.
final class KafkaConsumer: BusConsumer {
    private let topic: String
    /// Nil once closed. A call under way holds its own reference and ends before the client does.
    private let client: Mutex<RDClient?>

    init(_ client: RDClient, topic: String) {
        self.client = Mutex(client)
        self.topic = topic
    }

    func partitionCount(timeout: Duration) throws(BusError) -> Int {
        try open().metadata(topic: topic, timeout: timeout).partitions.count
    }

    func assign(_ positions: [PartitionPosition]) throws(BusError) {
        let client = try open()
        let list = makeList(positions)
        defer { rd_kafka_topic_partition_list_destroy(list) }
        let code = rd_kafka_assign(client.pointer, list)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw client.context.describe.error(code, doing: "assign partitions of topic \(topic)")
        }
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        let client = try open()
        var batch = ConsumerBatch()
        guard maxCount > 0 else { return batch }
        var reader = MessageReader(describe: client.context.describe)
        // Waiting is done for one message: a batch call would wait until the whole batch is full.
        if let first = rd_kafka_consumer_poll(client.pointer, timeout.millisecondsClamped) {
            reader.read(UnsafePointer(first), into: &batch)
            rd_kafka_message_destroy(first)
            drain(client, maxCount - 1, &reader, &batch)
        }
        batch.events += client.context.takeFailures().map { reader.event($0) }
        return batch
    }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        let client = try open()
        switch client.watermarks(topic: topic, partition: partition, timeout: timeout) {
        case .success(let watermarks): return watermarks
        case .failure(let error):
            throw client.context.describe.error(error.code, doing: "read the offsets of \(topic)[\(partition)]")
        }
    }

    func publishProgress(_ positions: [PartitionPosition]) {
        guard !positions.isEmpty, let client = client.withLock({ $0 }) else { return }
        let list = makeList(positions)
        defer { rd_kafka_topic_partition_list_destroy(list) }
        // The answer is of no interest: these offsets are for lag tools, and the next call overwrites them.
        let code = rd_kafka_commit(client.pointer, list, 1)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
            client.context.logger.debug("\(client.context.describe.error(code, doing: "publish progress"))")
        }
    }

    func close() {
        guard let client = client.withLock({ $0.take() }) else { return }
        rd_kafka_queue_yield(client.queue)
    }

    private func open() throws(BusError) -> RDClient {
        guard let client = client.withLock({ $0 }) else { throw BusError(.closed, "the consumer is closed") }
        return client
    }

    private func drain(_ client: RDClient, _ maxCount: Int, _ reader: inout MessageReader, _ batch: inout ConsumerBatch)
    {
        guard maxCount > 0 else { return }
        withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<rd_kafka_message_t>?.self, capacity: maxCount) {
            let count = rd_kafka_consume_batch_queue(client.queue, 0, $0.baseAddress, maxCount)
            guard count > 0 else { return }
            batch.messages.reserveCapacity(count + 1)
            for message in $0.prefix(count) {
                guard let message else { continue }
                reader.read(message, into: &batch)
                rd_kafka_message_destroy(message)
            }
        }
    }

    private func makeList(_ positions: [PartitionPosition]) -> UnsafeMutablePointer<rd_kafka_topic_partition_list_t>? {
        let list = rd_kafka_topic_partition_list_new(Int32(positions.count))
        for position in positions {
            let entry = rd_kafka_topic_partition_list_add(list, topic, position.partition)
            entry?.pointee.offset = position.offset
        }
        return list
    }
}
