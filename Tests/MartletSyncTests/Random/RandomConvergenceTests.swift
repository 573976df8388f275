import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that write, publish, read, crash and repeat themselves at random converge.
@Suite struct RandomConvergenceTests {
    /// `MARTLET_SEEDS=first-last` runs other seeds.
    static let seeds: ClosedRange<UInt64> = {
        let bounds =
            ProcessInfo.processInfo.environment["MARTLET_SEEDS"]?.split(separator: "-").compactMap { UInt64($0) } ?? []
        return bounds.count == 2 ? bounds[0]...bounds[1] : 1...50
    }()

    @Test(arguments: seeds) func nodesThatWriteAtRandomConverge(seed: UInt64) throws {
        var run = try CompanyRun(seed: seed)
        try run.run()
    }

    /// The same while each node changes the identity of two tables, and renames a column, at a different time.
    @Test(arguments: seeds) func nodesThatMigrateAtRandomConverge(seed: UInt64) throws {
        var run = try CompanyRun(seed: seed &+ 7_000_000, migrates: true)
        try run.run()
    }
}

/// One run: a seed decides everything but the wall clock.
struct CompanyRun {
    let directory: TemporaryDirectory
    let bus: InMemoryBus
    var random: SplitMix
    var writer: CompanyWriter
    var nodes: [TestNode] = []
    /// True if nodes begin with different identities, and change them.
    let migrates: Bool

    init(seed: UInt64, migrates: Bool = false) throws {
        self.migrates = migrates
        directory = try TemporaryDirectory()
        random = SplitMix(seed: seed)
        bus = InMemoryBus(topic: "t", partitionCount: 1 + random.below(4))
        writer = CompanyWriter(seed: seed &* 31)
        for name in ["a", "b", "c"] {
            nodes.append(try migrates ? node(name, attach: random.pick(Company.changes)) : node(name))
        }
    }

    private mutating func node(_ name: String, attach request: AttachRequest = Company.request) throws -> TestNode {
        let batch = 1 + random.below(6)
        let bytes = random.once(in: 3) ? 1000 : 900_000
        let clocks = random.once(in: 2) ? 1 + random.below(20) : 20_000
        let encoding = random.once(in: 4) ? WireEncoding.json : .protobuf
        return try TestNode(
            name, bus: bus, directory: directory, schema: Company.schema, attach: request,
            configure: {
                $0.applyBatchTransactions = batch
                $0.maxMessageBytes = bytes
                $0.encoding = encoding
                $0.recentClocks = clocks
            })
    }

    mutating func run() throws {
        for _ in 0..<25 + random.below(50) {
            let node = random.pick(nodes)
            if migrates, random.once(in: 12) { try migrate(node) }
            switch random.below(10) {
            case 0...4: try writer.write(node)
            case 5: node.publisher.step()
            case 6: try node.publish()
            case 7: node.consumer.step(timeout: .zero)
            case 8:
                if random.once(in: 3) { try node.consume() } else { try node.restart() }
            default: if random.once(in: 3) { node.publisher.rewind(to: Int64(random.below(4))) }
            }
        }
        if migrates { for node in nodes { try migrate(node, Company.renaming) } }
        try exchange(nodes)
        // A late joiner reads everything in another order.
        let late = try migrates ? node("late", attach: random.pick(Company.changes)) : node("late")
        if migrates { try migrate(late, Company.renaming) }
        try late.consume()
        if migrates { try checkDigests(nodes + [late]) }
        try check(nodes + [late])
    }

    private mutating func migrate(_ node: TestNode) throws {
        if random.once(in: 3) { return try migrate(node, Company.renaming) }
        let request = random.pick(Company.changes)
        writer.note("\(node.name) changes to \(request.identities)")
        _ = try node.store.attach(request)
    }

    private func migrate(_ node: TestNode, _ script: String) throws {
        guard try !Company.isRenamed(node) else { return }
        try node.store.alter(sql: script)
    }

    private func checkDigests(_ nodes: [TestNode]) throws {
        let digest = try StoreDigest.compute(nodes[0].store)
        for node in nodes {
            #expect(try StoreDigest.compute(node.store).entities == digest.entities, "\(node.name)")
            #expect(try node.store.audit().isClean, "\(node.name)")
        }
    }

    private func check(_ nodes: [TestNode]) throws {
        let expected = try Company.contents(nodes[0])
        for node in nodes {
            let contents = try Company.contents(node)
            if contents != expected {
                let missing = expected.filter { !contents.contains($0) }
                let extra = contents.filter { !expected.contains($0) }
                Issue.record(
                    """
                    \(node.name) differs from a.
                    Only a:
                    \(missing.joined(separator: "\n"))
                    Only \(node.name):
                    \(extra.joined(separator: "\n"))
                    """
                )
            }
            #expect(try node.rows("PRAGMA foreign_key_check") == [], "\(node.name)")
            #expect(try node.rows("PRAGMA integrity_check") == ["ok"], "\(node.name)")
            #expect(try Waiting.unexpected(node) == [], "\(node.name)")
            #expect(try node.gaps() == [], "\(node.name)")
            #expect(try node.chunks() == [], "\(node.name)")
            #expect(try node.store.quarantined() == [], "\(node.name)")
            #expect(try node.pendingMessages() == [], "\(node.name)")
        }
    }
}
