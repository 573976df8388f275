import Logging
import MartletKafka
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Abandoned clients end, whatever happened to the topic.
@Suite struct ClientEndTests {
    /// A broker's error codes for a deleted topic, and for a partition that it no longer leads.
    private static let unknownTopic: Int32 = 3
    private static let notLeader: Int32 = 6

    @Test(arguments: [false, true]) func p170AConsumerOfADeletedTopicEnds(isMadeAgain: Bool) throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 4])
        let lines = Mutex<[String]>([])
        let log = Logger(label: "test") { _ in
            RecordingLogHandler { event, _ in lines.withLock { $0.append("\(event.message)") } }
        }
        var configuration = KafkaConfiguration.test(broker)
        configuration.statisticsInterval = .milliseconds(10)
        // By default the client waits half a minute for the topic to appear.
        configuration.properties["topic.metadata.propagation.max.ms"] = "1"
        let bus = try KafkaBus(configuration, logger: log)
        var seenCount = 0
        for round in 0..<20 {
            let consumer = try bus.makeConsumer(pause: .zero)
            try consumer.assign((0..<4).map { PartitionPosition(partition: $0, offset: 0) })
            // Some clients are abandoned before they have read anything.
            if !round.isMultiple(of: 4) {
                try BusSession.waitUntil("all partitions are read") { _ in
                    try consumer.poll(maxCount: 10, timeout: .milliseconds(20)).events.contains { $0.isEnd }
                }
            }
            broker.setTopicError("martlet", Self.unknownTopic)
            broker.failNext(.fetch, with: [Self.unknownTopic, Self.notLeader, Self.unknownTopic])
            broker.failNext(.listOffsets, with: [Self.unknownTopic, Self.unknownTopic])
            if round.isMultiple(of: 5) {
                try BusSession.waitUntil("the consumer hears of it") { _ in
                    try consumer.poll(maxCount: 10, timeout: .milliseconds(20)).events.contains(where: \.isError)
                }
                seenCount += 1
            }
            if isMadeAgain { broker.setTopicError("martlet", 0) }
            _ = try? consumer.watermarks(partition: 0, timeout: .milliseconds(50))
            if round.isMultiple(of: 3) { try? consumer.assign([PartitionPosition(partition: 1, offset: 0)]) }
            consumer.close()
            broker.setTopicError("martlet", 0)
            broker.clearErrors(.fetch)
            broker.clearErrors(.listOffsets)
        }
        #expect(seenCount == 4)
        #expect(lines.withLock { !$0.contains { $0.contains("did not close") } })
    }
}

extension ConsumerEvent {
    fileprivate var isEnd: Bool { if case .endOfPartition = self { true } else { false } }
    fileprivate var isError: Bool { if case .error = self { true } else { false } }
}
