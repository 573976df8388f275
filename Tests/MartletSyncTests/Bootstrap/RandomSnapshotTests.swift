import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that write at random, on a topic that drops messages before all nodes have read them, converge by snapshots.
@Suite struct RandomSnapshotTests {
    @Test(arguments: RandomConvergenceTests.seeds) func nodesThatMissMessagesConverge(seed: UInt64) throws {
        var random = SplitMix(seed: seed &+ 40_000)
        var writer = CompanyWriter(seed: seed &* 17)
        let lab = try SnapshotLab(Company.schema, partitions: 1 + random.below(3), request: Company.request)
        var nodes: [TestNode] = []
        for name in ["a", "b", "c"] {
            let batch = 1 + random.below(6)
            let bytes = random.once(in: 3) ? 1000 : 900_000
            nodes.append(
                try lab.node(name) {
                    $0.applyBatchTransactions = batch
                    $0.maxMessageBytes = bytes
                })
        }
        for _ in 0..<40 + random.below(40) {
            let node = random.pick(nodes)
            switch random.below(12) {
            case 0...5: try writer.write(node)
            case 6: try node.publish()
            case 7: node.consumer.step(timeout: .zero)
            case 8: if random.once(in: 3) { try node.restart() }
            case 9: try node.makeSnapshot()
            case 10:
                // A node that has read everything makes a snapshot, and the topic drops all messages.
                try node.publish()
                try node.consume()
                try node.makeSnapshot()
                try lab.prune()
            default: if random.once(in: 2) { _ = try node.snapshots?.load(partitionCount: lab.partitionCount) }
            }
        }
        try exchange(nodes)
        try exchange(nodes)
        try nodes[0].makeSnapshot()
        try lab.prune()
        let late = try lab.node("late")
        try late.consume()
        nodes.append(late)
        let expected = try Company.contents(nodes[0])
        for node in nodes {
            #expect(try Company.contents(node) == expected, "\(node.name)")
            #expect(try node.rows("PRAGMA integrity_check") == ["ok"], "\(node.name)")
            #expect(try Waiting.unexpected(node) == [], "\(node.name)")
            #expect(try node.chunks() == [], "\(node.name)")
            #expect(try node.pendingMessages() == [], "\(node.name)")
        }
        try expectSame(nodes)
    }
}
