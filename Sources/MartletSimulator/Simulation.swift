import Foundation
import GRDB
import Logging
import MartletStore
import MartletSync

/// One run: the nodes of one seed, and everything that happens to them. Must be used on the thread that created it.
final class Simulation {
    let seed: UInt64
    let options: SimulationOptions
    private(set) var schema: SimulatedSchema
    let plan: Plan
    let time = TrueTime()
    let topic: SimulatedTopic
    let snapshotTopic: SimulatedTopic
    let checkTopic: SimulatedTopic
    /// The coverage of snapshots, by origin: the last applied sequence, and the gaps.
    var covered: [String: [Coverage]] = [:]
    private let folder: SimulationFolder
    private let stalls: StallWatch
    private(set) var nodes: [SimulatedNode] = []
    private var trace: [String] = []
    private var shapes: [Int: [TableShape]] = [:]
    private var profiles: [Int: [TableProfile]] = [:]
    /// The numbers of the statements that were run in a generated workload.
    var statements: [Int] = []
    /// The number and the seed of the current step.
    private(set) var step: (number: Int, seed: UInt64) = (0, 0)
    /// The current step, for the trace.
    private var current = "end"
    /// Determines the details of the step.
    var random = SplitMix(seed: 0)
    /// The transactions that a restore rolled back, and that return from the topic.
    var returning: Set<String> = []
    /// Former node IDs, of whose newest transactions no copy is left.
    var retired: Set<String> = []
    /// The rows with which every node started.
    var initial: Rows = [:]

    init(
        seed: UInt64, options: SimulationOptions, schema: SimulatedSchema, template: StoreTemplate, tamper: Tamper?,
        stalls: StallWatch, sabotage: ((Database) throws -> Void)? = nil
    ) throws {
        self.seed = seed
        self.options = options
        self.stalls = stalls
        self.schema = schema
        plan = Plan(seed: seed, options: options, isGenerated: schema.isGenerated && options.schema == nil)
        var chance = SplitMix(seed: plan.upgradeSeed)
        self.schema.upgrades = plan.faults.contains(.upgrade) ? chance.some(schema.upgrades, 2) : []
        folder = try SimulationFolder()
        let security = options.isSealed ? try Self.security() : MessageSecurity()
        topic = SimulatedTopic(partitionCount: plan.partitionCount, time: time, security: security, tamper: tamper)
        if options.isSealed { topic.published.reader = try TopicReader(topic: topic.name, security) }
        snapshotTopic = SimulatedTopic("simulated.snapshot", partitionCount: 1, time: time, tamper: nil)
        if plan.faults.contains(.controlRecords) {
            topic.controlRecords = SplitMix(seed: seed &* 0x8cb9_2ba7_2f3d_8dd7)
            snapshotTopic.controlRecords = SplitMix(seed: seed &* 0x8cb9_2ba7_2f3d_8dd7 &+ 1)
        }
        checkTopic = SimulatedTopic(AntiEntropy.name(of: "simulated"), partitionCount: 1, time: time, tamper: nil)
        for (index, node) in plan.nodes.enumerated() {
            let path = folder.path + "/\(index).sqlite"
            let other = try template.copy(to: path, node: node.id, seed: seed)
            if index == 0, let sabotage { try other.write(sabotage) }
            nodes.append(
                SimulatedNode(
                    index: index, path: path, other: other, plan: node, topic: topic, snapshots: snapshotTopic,
                    checks: checkTopic,
                    horizon: plan.horizon, time: time,
                    log: log(options.showsLogs)))
        }
        guard options.features.contains(.recreations) else { return }
        for node in nodes where Chance(seed).once(in: 2, "patience of " + node.name) {
            node.schemaPatience = RecreatedTables.patience
        }
    }

    /// Nonces are random, but nothing that is decided depends on them.
    private static func security() throws -> MessageSecurity {
        let ring = try KeyRing(parsing: KeyRing.adding("simulated", makesCurrent: true, to: ""))
        return MessageSecurity(keys: FixedKeys(ring))
    }

    func run() -> SimulationReport {
        var report = SimulationReport(seed: seed, options: options)
        report.faults = plan.faults.sorted()
        report.steps = plan.steps.map(\.number)
        note(
            "\(nodes.count) nodes, \(plan.partitionCount) partitions, faults: "
                + (report.faults.isEmpty ? "none" : report.faults.map(\.rawValue).joined(separator: ", ")))
        if schema.isGenerated {
            for line in schema.sql.split(separator: "\n") { note("schema  \(line)") }
            for (table, columns) in schema.identities.sorted(by: { $0.key < $1.key }) {
                note("identity  \(table)=\(columns.joined(separator: ","))")
            }
        }
        do {
            try begin()
            for step in plan.steps { try take(step) }
            current = "end"
            stalls.begin(seed, step: current)
            try finish()
        } catch let failure as SimulationFailure {
            report.failure = failure
        } catch {
            report.failure = SimulationFailure(.error, "\(error)")
        }
        if let failure = report.failure {
            note("FAILED \(failure)")
            noteRows()
        }
        report.statements = statements
        if report.failure != nil { report.partCount = schema.partCount }
        report.transactionCount = topic.published.payloads.count
        report.trace = trace
        var hash = TraceHash()
        for line in trace { hash.add(line) }
        report.hash = hash.text
        for node in nodes { node.crash() }
        Machine.leave()
        return report
    }

    func log(_ isShown: Bool) -> Logger {
        let trace = TraceLog(simulation: self)
        return Logger(label: "simulator") { _ -> any LogHandler in
            if isShown { TraceLogHandler(trace: trace) } else { SwiftLogNoOpLogHandler() }
        }
    }

    func note(_ line: String) { trace.append("\(current)  \(line)") }

    private func begin() throws {
        Machine.revive()
        Machine.setTime(time.milliseconds)
        initial = try nodes[0].start().store.database.read { try Contents($0).rows() }
        if schema.isGenerated, Chance(seed).once(in: 2, "shared rows") { try share() }
    }

    /// Gives all nodes common rows before any fault: only rows that several nodes have can be changed concurrently.
    private func share() throws {
        let node = nodes[0]
        for number in 0..<3 {
            random = SplitMix(seed: seed &+ UInt64(number))
            step = (1000 + number, random.next())
            current = "begin  \(node.name)"
            try alive(node) { try write(node, isForeign: false) }
        }
        try exchangeAll()
    }

    // MARK: Steps

    private func take(_ step: Step) throws {
        random = SplitMix(seed: step.seed)
        self.step = (step.number, step.seed)
        let passed = Int64(random.below(random.once(in: 20) ? 60_000 : 800))
        // If several nodes act in the same millisecond, the seed's numbers for the passed time decide which came first.
        if !schema.isGenerated || !Chance(step.seed).once(in: 4, "at once") { time.milliseconds += passed }
        let node = actor(of: step)
        current = "\(step.number)  \(node.name)"
        stalls.begin(seed, step: "\(current)  \(step.action)")
        node.link.random = SplitMix(seed: step.seed &+ 1)
        node.snapshotLink.isCut = node.link.isCut
        node.link.reorders = plan.faults.contains(.reordering)
        disturb(node)
        if node.idleSteps > 0, [.publish, .consume, .exchange, .deliver].contains(step.action) {
            node.idleSteps -= 1
            return note("is slow")
        }
        if step.action == .freeDisk {
            node.room = nil
            note("has room on its disk")
        }
        try alive(node) { try perform(step.action, node) }
        try check(node)
    }

    /// Disturbs the node's connections in this step. These faults have draws of their own.
    private func disturb(_ node: SimulatedNode) {
        node.link.losesConnections = plan.faults.contains(.lostConnections)
        node.snapshotLink.losesConnections = !plan.faults.isDisjoint(with: [.lostConnections, .lostSnapshots])
        node.snapshotLink.reorders = plan.faults.contains(.lostSnapshots)
        guard node.snapshotLink.losesConnections else { return }
        node.snapshotLink.random = SplitMix(seed: step.seed &+ 3)
    }

    private func actor(of step: Step) -> SimulatedNode {
        let node = nodes[step.node]
        var chance = SplitMix(seed: step.seed &+ 2)
        guard let copy = node.copy, chance.once(in: 2), !step.action.isOfOneMachine else { return node }
        return copy
    }

    /// Adds a node with the configuration of an existing one.
    func addNode(like node: SimulatedNode) -> SimulatedNode {
        let added = SimulatedNode(
            index: nodes.count, path: folder.path + "/\(nodes.count).sqlite", plan: node.plan, topic: topic,
            snapshots: snapshotTopic, checks: checkTopic,
            horizon: plan.horizon, time: time, log: log(options.showsLogs))
        added.schemaPatience = node.schemaPatience
        nodes.append(added)
        return added
    }

    /// Performs an action on a node, which may die during it.
    ///
    /// - Returns: false if the node died, or could not continue because its disk is full.
    @discardableResult
    func alive(_ node: SimulatedNode, _ body: () throws -> Void) throws -> Bool {
        Machine.setTime(node.clock.milliseconds)
        Machine.room = node.room
        var thrown: (any Error)?
        do {
            _ = try start(node)
            try body()
        } catch {
            thrown = error
        }
        node.link.callsUntilDeath = nil
        node.room = Machine.room
        Machine.room = nil
        if Machine.hasDied || node.link.isDead {
            node.crash()
            note("\(node.name) died")
            return false
        }
        Machine.revive()
        guard let thrown else { return true }
        guard node.room != nil, Machine.isFull(thrown) else { throw thrown }
        note("can't, for its disk is full: \(thrown)")
        return false
    }

    /// Opens a node's files if it is down, and finds out whether its last write before a death was committed.
    func start(_ node: SimulatedNode) throws -> SimulatedNode.Open {
        let wasDown = node.open == nil
        let open = try node.start()
        guard wasDown else { return open }
        do {
            try recall(node, open)
        } catch {
            // If the machine died, the caller handles that later.
            if !Machine.hasDied { node.crash() }
            throw error
        }
        return open
    }

    private func recall(_ node: SimulatedNode, _ open: SimulatedNode.Open) throws {
        if let uncertain = node.uncertain {
            let isThere = try open.other.read { db in
                try Bool.fetchOne(
                    db, sql: "SELECT EXISTS (SELECT 1 FROM sim_write WHERE id = ?)", arguments: [uncertain.id]) ?? false
            }
            if isThere { node.written.append(uncertain) }
            note("\(node.name)'s \(uncertain.id) was \(isThere ? "" : "not ")committed")
            node.uncertain = nil
        }
        if node.id != open.engine.node.uuid {
            // The node died after the new ID had been written.
            rename(node, open.engine.node.uuid)
        }
        node.version = try open.other.read { db in
            try schema.upgrades.prefix { try Bool.fetchOne(db, sql: $0.probe) != nil }.count
        }
    }

    func shapes(of node: SimulatedNode, _ db: Database) throws -> [TableShape] {
        if let known = shapes[node.version] { return known }
        let found = try TableShape.all(db)
        shapes[node.version] = found
        return found
    }

    func profiles(of node: SimulatedNode, _ db: Database) throws -> [TableProfile] {
        // A program may have dropped one of them for a while.
        if options.features.contains(.recreations) { return try TableProfile.all(db) }
        if let known = profiles[node.version] { return known }
        let found = try TableProfile.all(db)
        profiles[node.version] = found
        return found
    }
}
