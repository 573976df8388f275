import Foundation
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that collect tombstones after 30 days, on one clock.
struct TombstoneLab {
    let lab: SnapshotLab
    let checks: InMemoryBus
    let clock = TestClock(SQLiteClock.milliseconds)
    static let horizon = Duration.seconds(30 * 86_400)

    init(partitions: Int = 2) throws {
        lab = try SnapshotLab(partitions: partitions)
        checks = InMemoryBus(topic: AntiEntropy.name(of: "t"), partitionCount: 1)
    }

    func node(_ name: String, filters: SyncFilters? = nil) throws -> CheckedNode {
        try checked(lab.node(name, clock: clock) { $0.filters = filters })
    }

    func checked(_ node: TestNode, horizon: Duration? = horizon) throws -> CheckedNode {
        var configuration = AntiEntropyConfiguration()
        configuration.tombstoneHorizon = horizon
        let antiEntropy = AntiEntropy(engine: node.engine, bus: checks, topic: "t", configuration: configuration)
        _ = try antiEntropy.connect()
        return CheckedNode(node: node, antiEntropy: antiEntropy)
    }

    func wait(days: Int64) { clock.milliseconds += days * 86_400_000 }

    /// Each node announces its clock, twice: what it has received by then decides which tombstones it collects.
    func report(_ nodes: [CheckedNode]) throws {
        for _ in 0..<2 {
            for node in nodes { try node.antiEntropy.report() }
            try talk(nodes)
        }
    }

    /// Publishes, reads and answers until no node has anything more to say.
    func settle(_ nodes: [CheckedNode]) throws {
        for _ in 0..<4 {
            try exchange(nodes.map(\.node))
            try report(nodes)
        }
        try exchange(nodes.map(\.node))
    }
}

extension CheckedNode {
    func tombstoneCount() throws -> Int { try node.tombstones().count }
    func quarantined() throws -> [String] { try node.reasons() }
}
