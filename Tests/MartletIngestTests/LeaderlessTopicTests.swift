import MartletBus
import MartletIngest
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

/// Topics with a partition that no broker leads.
@Suite(.timeLimit(.minutes(5))) struct LeaderlessTopicTests {
    @Test func otherPartitionsAreIngestedMeanwhile() throws {
        let lab = try IngestLab()
        let clock = TestClock()
        let node = try lab.node("a", clock: clock)
        let source = lab.topic(partitions: 4)
        for id in 1...40 { try source.send("c", key: #"{"id":\#(id)}"#, after: #"{"id":\#(id),"name":"x"}"#) }
        let missing = try #require(try lab.position(ofLastIn: source.bus, key: #"{"id":7}"#)).partition
        let topics = LeaderlessTopics(first: lab.bus)
        topics.leaderless.withLock { $0 = [missing] }
        var configuration = IngestConfiguration()
        configuration.topics = [TableMapping(topic: "pg.public.product", table: "product")]
        let ingester = try Ingester(
            engine: node.engine, topics: topics, configuration: configuration, mayBegin: { true })
        try runUntilNothingMoves("ingesting") { try ingester.step(timeout: .milliseconds(1)) != .idle }
        let count = try #require(Int(try node.rows("SELECT count(*) FROM product")[0]))
        #expect(count > 0 && count < 40)
        #expect(try node.rows("SELECT name FROM product WHERE id = 7") == [])
        topics.leaderless.withLock { $0 = [] }
        clock.pass(.seconds(60))
        #expect(try ingester.runUntilCaughtUp() == 40 - count)
        #expect(try node.rows("SELECT count(*) FROM product") == ["40"])
    }
}

/// Topics in memory with partitions that have no leader.
private final class LeaderlessTopics: IngestTopics {
    let first: InMemoryBus
    let leaderless = Mutex<Set<Int32>>([])

    init(first: InMemoryBus) { self.first = first }

    func bus(of topic: String) -> any Bus {
        LeaderlessBus(inner: InMemoryBus(topic: topic, beside: first), topics: self)
    }
}

private struct LeaderlessBus: ForwardingBus {
    let inner: InMemoryBus
    let topics: LeaderlessTopics

    func makeConsumer() throws(BusError) -> any BusConsumer { LeaderlessConsumer(try inner.makeConsumer(), topics) }
}

private final class LeaderlessConsumer: ForwardingConsumer {
    let inner: any BusConsumer
    private let topics: LeaderlessTopics

    init(_ inner: any BusConsumer, _ topics: LeaderlessTopics) {
        self.inner = inner
        self.topics = topics
    }

    var partitionsWithoutLeader: Set<Int32> { topics.leaderless.withLock { $0 } }

    func watermarks(partition: Int32, timeout: Duration) throws(BusError) -> Watermarks {
        guard !partitionsWithoutLeader.contains(partition) else {
            throw BusError(.unreachable, "partition \(partition) has no leader", isRetriable: true)
        }
        return try inner.watermarks(partition: partition, timeout: timeout)
    }
}
