import Foundation
import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Nodes that write at random into tables with every kind of constraint converge, in whichever order messages arrive:
/// on rows, on pending changes and their reasons, and on what an anti-entropy check compares.
@Suite struct RandomConstraintTests {
    /// `MARTLET_CONSTRAINT_SEEDS=first-last` runs other seeds.
    static let seeds: ClosedRange<UInt64> = {
        let bounds =
            ProcessInfo.processInfo.environment["MARTLET_CONSTRAINT_SEEDS"]?.split(separator: "-")
            .compactMap { UInt64($0) } ?? []
        return bounds.count == 2 ? bounds[0]...bounds[1] : 1...60
    }()

    @Test(arguments: seeds) func p70NodesConvergeOnEveryConstraintInEveryOrderOfMessages(seed: UInt64) throws {
        var run = try ConstraintRun(seed: seed)
        try run.run()
    }
}

/// One run: a seed decides everything but the wall clock.
struct ConstraintRun {
    private let world: ConstraintWorld
    private let lab: Lab
    private var random: SplitMix
    private var nodes: [TestNode] = []
    private var trace: [String] = []
    private let keepsKeys: Bool
    private let seed: UInt64

    init(seed: UInt64) throws {
        self.seed = seed
        random = SplitMix(seed: seed)
        let worlds = ConstraintWorld.all
        world = worlds[Int(seed % UInt64(worlds.count))]
        keepsKeys = !random.once(in: 3)
        var request = AttachRequest()
        request.identities = world.identities
        lab = try Lab(world.schema, partitions: 1 + random.below(3), request: request)
        for name in ["a", "b", "c"] { nodes.append(try lab.node(name)) }
        trace.append("foreign keys \(keepsKeys ? "on" : "off")")
    }

    mutating func run() throws {
        for _ in 0..<15 + random.below(30) {
            let node = random.pick(nodes)
            switch random.below(12) {
            case 0...5: try write(node)
            case 6...7:
                trace.append("\(node.name) publishes")
                try node.publish()
            case 8...9:
                trace.append("\(node.name) reads")
                try node.consume()
            case 10:
                trace.append("\(node.name) restarts")
                try node.restart()
            default:
                trace.append("all exchange")
                try exchange(nodes)
            }
        }
        try exchange(nodes)
        let messages = try lab.messages()
        var late: [TestNode] = []
        for name in ["in order", "backwards", "shuffled", "at once"] {
            let node = try lab.node(name)
            switch name {
            case "in order": for message in messages { try node.receive([message]) }
            case "backwards": for message in messages.reversed() { try node.receive([message]) }
            case "shuffled": for message in messages.shuffled(using: &random) { try node.receive([message]) }
            default: try node.consume()
            }
            late.append(node)
        }
        try check(nodes + late)
        try checkRecords(nodes + late)
    }

    private mutating func write(_ node: TestNode) throws {
        let statements = (0...random.below(3)).map { _ in world.statement(&random, keepsKeys: keepsKeys) }
        let sql = statements.joined(separator: ";\n")
        let isForeign = random.once(in: 2)
        do {
            if isForeign || !keepsKeys {
                try node.foreignWrite(sql, foreignKeys: keepsKeys)
            } else {
                try node.write(sql)
            }
            trace.append("\(node.name) \(isForeign ? "foreign" : "own"): \(sql)")
        } catch let error as StoreError where [19, 20].contains((error.sqliteCode ?? 0) & 0xff) {
        } catch let error as DatabaseError where [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH].contains(error.resultCode) {
        }
        if random.once(in: 2) { SQLiteClock.advance() }
    }

    // MARK: Invariants

    /// What waits on a node. Rows without an ID exist on one node only.
    private func waiting(_ node: TestNode) throws -> [String] {
        try node.waiting { $0.reason != .deleted && $0.identity?.hasNoIdentity != true }
    }

    private func check(_ nodes: [TestNode]) throws {
        let digest = try StoreDigest.compute(nodes[0].store)
        for node in nodes {
            var problems: [String] = []
            let other = try StoreDigest.compute(node.store)
            for (mine, first) in zip(other.entities, digest.entities) where mine != first {
                problems.append("the digest of \(mine.name) differs")
            }
            let (mine, first) = (try waiting(node), try waiting(nodes[0]))
            if mine != first {
                problems.append("waits:\n\(mine.joined(separator: "\n"))\nand not\n\(first.joined(separator: "\n"))")
            }
            problems += try node.rows("PRAGMA foreign_key_check").map { "dangling: \($0)" }
            problems += try node.rows("PRAGMA integrity_check").filter { $0 != "ok" }
            if try !node.store.audit().isClean { problems.append("the audit finds rows that the log doesn't know of") }
            guard !problems.isEmpty else { continue }
            Issue.record(
                """
                seed \(seed): \(node.name) differs from a: \(problems.joined(separator: "\n"))
                a has:\n\(try dump(nodes[0]))
                \(node.name) has:\n\(try dump(node))
                \(world.schema)
                \(trace.joined(separator: "\n"))
                """)
            return
        }
    }

    private func dump(_ node: TestNode) throws -> String {
        let rows = try world.tables.flatMap { try node.rows("SELECT '\($0.name)', * FROM \($0.name)") }
        let pending = try node.withContext { db, context -> [String] in
            let pending = PendingRows(db: db, context: context)
            return try pending.all().compactMap { row -> String? in
                try context.catalog[row.entity].map { entity in
                    let known = try pending.load(context.table(entity), row.identity)
                    return "\(entity.name) \(row.identity): \(String(describing: known))"
                }
            }
        }
        return try (rows + pending + node.waiting()).joined(separator: "\n")
    }

    /// Compares what an anti-entropy check compares: all registers of all rows.
    private func checkRecords(_ nodes: [TestNode]) throws {
        var first: [String: RangeSum] = [:]
        for node in nodes {
            let sums = try node.engine.session.transaction { db, context in
                let reader = try RecordReader(db, context)
                return try Dictionary(
                    uniqueKeysWithValues: context.catalog.entities.map { entity in
                        (entity.name, try reader.sums(of: entity, [.all])[.all] ?? RangeSum())
                    })
            }
            if first.isEmpty { first = sums }
            for (name, sum) in sums where first[name] != sum {
                Issue.record(
                    """
                    seed \(seed): a check finds that \(node.name) and a differ in \(name)
                    a has:\n\(try dump(nodes[0]))
                    \(node.name) has:\n\(try dump(node))
                    \(world.schema)
                    \(trace.joined(separator: "\n"))
                    """)
                return
            }
        }
    }
}
