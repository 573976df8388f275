import CRdKafka
import Logging
import MartletSync
import MartletTestSupport
import Testing

@testable import MartletKafka

@Suite struct GroupOffsetsTests {
    /// Nothing may change afterwards for a long time, and lag tools would report a lag that does not exist.
    @Test func offsetsThatTheBrokerDidNotStoreAreSentAgain() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        // OffsetCommit is refused once, with OFFSET_METADATA_TOO_LARGE, which librdkafka does not retry.
        let commit = EmbeddedBroker.Request(apiKey: 8)
        broker.failNext(commit, with: [12])
        let bus = try KafkaBus(.test(broker))
        let offsets = GroupOffsets(topic: "martlet", logger: Logger(label: "test"), retryInterval: .zero) {
            group throws(BusError) in try bus.makeClient(.committer, role: "offsets", group: group)
        }
        defer { offsets.close() }
        offsets.publish([PartitionPosition(partition: 0, offset: 5)], of: "NODE")
        let reader = try bus.makeClient(.committer, role: "test", group: KafkaRight.group(of: "NODE"))
        try BusSession.waitUntil("the stored offset") { _ in
            offsets.rest()
            return committedOffset(reader) == 5
        }
    }

    /// Asks the broker for the offset of partition 0 that the client's group has stored.
    private func committedOffset(_ client: RDClient) -> Int64? {
        let list = rd_kafka_topic_partition_list_new(1)
        defer { rd_kafka_topic_partition_list_destroy(list) }
        rd_kafka_topic_partition_list_add(list, "martlet", 0)
        guard rd_kafka_committed(client.pointer, list, 1000) == RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return list?.pointee.elems[0].offset
    }
}
