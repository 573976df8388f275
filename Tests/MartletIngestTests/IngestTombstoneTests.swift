import MartletBus
import MartletIngest
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Records from before the time up to which nodes have collected tombstones.
@Suite(.timeLimit(.minutes(5))) struct IngestTombstoneTests {
    private let lab: IngestLab
    private let clock = TestClock(SQLiteClock.milliseconds)
    private let checks = InMemoryBus(topic: AntiEntropy.name(of: "t"))
    private let source: SourceTopic

    init() throws {
        lab = try IngestLab()
        source = lab.topic()
    }

    private struct Checked {
        var node: TestNode
        var antiEntropy: AntiEntropy
    }

    private func node(_ name: String) throws -> Checked {
        let node = try lab.node(name, clock: clock)
        var configuration = AntiEntropyConfiguration()
        configuration.tombstoneHorizon = .seconds(30 * 86_400)
        let antiEntropy = AntiEntropy(engine: node.engine, bus: checks, topic: "t", configuration: configuration)
        _ = try antiEntropy.connect()
        return Checked(node: node, antiEntropy: antiEntropy)
    }

    private func settle(_ nodes: [Checked]) throws {
        for _ in 0..<4 {
            try exchange(nodes.map(\.node))
            for _ in 0..<2 {
                for one in nodes { try one.antiEntropy.report() }
                for _ in 0..<10 { for one in nodes { _ = one.antiEntropy.step(timeout: .zero) } }
            }
        }
        try exchange(nodes.map(\.node))
    }

    private func row(_ id: Int, _ name: String) -> String { #"{"id":\#(id),"name":"\#(name)"}"# }

    private func sendOld() throws {
        let then = clock.milliseconds - 100 * 86_400_000
        try source.send("c", key: #"{"id":1}"#, after: row(1, "first"), at: then)
        try source.send("u", key: #"{"id":1}"#, before: row(1, "first"), after: row(1, "second"), at: then + 1)
        try source.send("c", key: #"{"id":2}"#, after: row(2, "gone"), at: then + 2)
        try source.sendDelete(key: #"{"id":2}"#)
    }

    @Test func theyAreStampedSoThatOtherNodesTakeThem() throws {
        let (a, b) = (try node("a"), try node("b"))
        try settle([a, b])
        clock.pass(.seconds(40 * 86_400))
        try settle([a, b])
        #expect(try TombstoneCollection(a.node.engine).collectedThrough() ?? 0 > 0)
        try sendOld()
        try lab.ingest(a.node)
        try exchange([a.node, b.node])
        for one in [a, b] {
            #expect(try one.node.rows("SELECT id, name FROM product") == ["1|second"])
            #expect(try one.node.status().quarantinedCount == 0)
        }
        // They come again, and change nothing.
        try a.node.write("UPDATE product SET name = 'own'")
        let old = clock.milliseconds - 100 * 86_400_000
        try source.send(
            "u", key: #"{"id":1}"#, before: row(1, "first"), after: row(1, "second"), at: old, lsn: 1002)
        try lab.ingest(a.node)
        try exchange([a.node, b.node])
        for one in [a, b] { #expect(try one.node.rows("SELECT id, name FROM product") == ["1|own"]) }
    }

    /// The node that ingests does not know yet how far the other one has collected.
    @Test func whatOtherNodesRefuseIsRepublished() throws {
        let b = try node("b")
        try settle([b])
        clock.pass(.seconds(40 * 86_400))
        try settle([b])
        let a = try node("a")
        try a.node.write("INSERT INTO country VALUES ('ch', 'Switzerland')")
        try a.node.publish()
        try sendOld()
        try lab.ingest(a.node)
        try a.node.write("INSERT INTO country VALUES ('at', 'Austria')")
        try a.node.publish()
        try b.node.consume()
        #expect(try b.node.rows("SELECT id, name FROM product").isEmpty)
        try settle([a, b])
        for one in [a, b] {
            #expect(try one.node.rows("SELECT id, name FROM product") == ["1|second"])
            #expect(try one.node.rows("SELECT code FROM country ORDER BY code") == ["at", "ch"])
        }
    }
}
