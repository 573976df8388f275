import MartletBus
import MartletIngest
import MartletSync
import MartletTestSupport
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
        topics.leaderless.all = [missing]
        var configuration = IngestConfiguration()
        configuration.topics = [TableMapping(topic: "pg.public.product", table: "product")]
        let ingester = try Ingester(
            engine: node.engine, topics: topics, configuration: configuration, mayBegin: { true })
        try runUntilNothingMoves("ingesting") { try ingester.step(timeout: .milliseconds(1)) != .idle }
        let count = try #require(Int(try node.rows("SELECT count(*) FROM product")[0]))
        #expect(count > 0 && count < 40)
        #expect(try node.rows("SELECT name FROM product WHERE id = 7") == [])
        topics.leaderless.all = []
        clock.pass(.seconds(60))
        #expect(try ingester.runUntilCaughtUp() == 40 - count)
        #expect(try node.rows("SELECT count(*) FROM product") == ["40"])
    }
}

/// Topics in memory with partitions that have no leader.
private final class LeaderlessTopics: IngestTopics {
    let first: InMemoryBus
    let leaderless = LeaderlessPartitions()

    init(first: InMemoryBus) { self.first = first }

    func bus(of topic: String) -> any Bus {
        LeaderlessBus(InMemoryBus(topic: topic, beside: first), leaderless)
    }
}
