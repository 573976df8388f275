import MartletBus
import MartletIngest
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Batches of a topic that can't be read hold up their partition as a whole.
@Suite(.timeLimit(.minutes(5))) struct UnreadableBatchTests {
    private static let topic = "pg.public.product"

    private let lab: IngestLab
    private let clock = TestClock()
    private let node: TestNode
    private let topics: DamagedTopics
    private let ingester: Ingester

    init() throws {
        lab = try IngestLab()
        node = try lab.node("a", clock: clock)
        let source = lab.topic()
        for id in 1...6 { try source.send("c", key: #"{"id":\#(id)}"#, after: #"{"id":\#(id),"name":"x"}"#) }
        topics = DamagedTopics(first: lab.bus, damaged: 2...3)
        var configuration = IngestConfiguration()
        configuration.topics = [TableMapping(topic: Self.topic, table: "product")]
        ingester = try Ingester(
            engine: node.engine, topics: topics, configuration: configuration, mayBegin: { true })
    }

    @Test func p240ABatchThatCanBeReadLaterIsMergedAsAWhole() throws {
        #expect(try ingester.runUntilCaughtUp() == 2)
        #expect(try node.store.ingestPlaces().map(\.next) == [2])
        // A broker may repair it.
        topics.damaged.withLock { $0 = nil }
        clock.pass(.seconds(60))
        #expect(try ingester.runUntilCaughtUp() == 4)
        #expect(try node.rows("SELECT group_concat(id) FROM product") == ["1,2,3,4,5,6"])
    }

    @Test func p240ABatchIsSkippedAsAWhole() throws {
        _ = try ingester.runUntilCaughtUp()
        let since = try node.store.ingestPlaces().first?.since
        clock.pass(.seconds(60))
        #expect(try ingester.runUntilCaughtUp() == 0)
        #expect(try node.store.ingestPlaces().map(\.since) == [since])
        #expect(throws: StoreError.self) {
            try node.store.skipIngested(topic: Self.topic, partition: 0, offset: 3)
        }
        try node.store.skipIngested(topic: Self.topic, partition: 0, offset: 2)
        #expect(try node.store.ingestPlaces().map(\.next) == [4])
        clock.pass(.seconds(60))
        #expect(try ingester.runUntilCaughtUp() == 2)
        #expect(try node.rows("SELECT group_concat(id) FROM product") == ["1,2,5,6"])
    }

    @Test func aStoreOfAnEarlierFormatIsListedAndNotChanged() throws {
        _ = try ingester.runUntilCaughtUp()
        let places = try node.store.ingestPlaces()
        try node.foreignWrite(OldFormat.sql(sync: 16))
        #expect(try node.store.ingestPlaces() == places)
        let error = #expect(throws: StoreError.self) {
            try node.store.skipIngested(topic: Self.topic, partition: 0, offset: 2)
        }
        #expect(error?.hint.contains("Start its agent once") ?? false)
        try node.restart()
        #expect(try node.store.ingestPlaces() == places)
        try node.store.skipIngested(topic: Self.topic, partition: 0, offset: 2)
        #expect(try node.store.ingestPlaces().map(\.next) == [3])
    }
}

/// Topics in memory of which partition 0 has a batch that can't be read.
private final class DamagedTopics: IngestTopics {
    let first: InMemoryBus
    /// The offsets of the batch. Nil if it can be read.
    let damaged: Mutex<ClosedRange<Int64>?>

    init(first: InMemoryBus, damaged: ClosedRange<Int64>) {
        self.first = first
        self.damaged = Mutex(damaged)
    }

    func bus(of topic: String) -> any Bus { DamagedBus(inner: InMemoryBus(topic: topic, beside: first), topics: self) }
}

private struct DamagedBus: ForwardingBus {
    let inner: InMemoryBus
    let topics: DamagedTopics

    func makeConsumer() throws(BusError) -> any BusConsumer { DamagedConsumer(try inner.makeConsumer(), topics) }
}

/// Replaces the messages of the batch by one, as the consumer of Kafka does.
private final class DamagedConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    private let topics: DamagedTopics

    init(_ inner: any BusConsumer, _ topics: DamagedTopics) {
        self.inner = inner
        self.topics = topics
    }

    func poll(maxCount: Int, timeout: Duration) throws(BusError) -> ConsumerBatch {
        var batch = try inner.poll(maxCount: maxCount, timeout: timeout)
        guard let damaged = topics.damaged.withLock({ $0 }) else { return batch }
        batch.messages = batch.messages.compactMap { message in
            guard damaged.contains(message.position.offset) else { return message }
            guard message.position.offset == damaged.upperBound else { return nil }
            var placeholder = IncomingMessage(
                position: message.position, key: [], headers: [], payload: [], timestamp: -1, isBrokerTimestamp: false)
            placeholder.problem = "damaged"
            placeholder.batchStart = damaged.lowerBound
            return placeholder
        }
        return batch
    }
}
