import Foundation
import GRDB
import MartletStore
import MartletSync

/// Damage that Martlet doesn't notice: anti-entropy must find nothing between nodes that agree, and then find and
/// repair it.
extension Simulation {
    func checkDamage() throws {
        guard plan.faults.contains(.damage) else { return }
        let all = try makeAntiEntropy()
        try compareAll(all)
        guard all.allSatisfy({ $0.currentProgress.found == 0 }) else {
            throw SimulationFailure(.damage, "a check finds a divergence between nodes that agree")
        }
        // Triggers that derive data don't learn of a lost row.
        guard !schema.keepsDerived else { return }
        // Damages one node only: data that all nodes have lost is gone.
        let node = random.pick(nodes)
        var count = 0
        for _ in 0..<1 + random.below(4) {
            try alive(node) { if try damage(node) { count += 1 } }
        }
        guard count > 0 else { return }
        note("\(count) damages, \(try repair(all)) rows and columns repaired")
    }

    /// Repairs rows that were skipped in snapshots by anti-entropy, as nodes do that garbage-collect tombstones.
    func checkLeftOut() throws {
        let names = nodes.filter(\.hasLeftOut).map(\.name)
        guard !names.isEmpty else { return }
        let repaired = try repair(makeAntiEntropy())
        note("\(names.joined(separator: ", ")) skipped rows of snapshots; \(repaired) rows and columns repaired")
    }

    private func makeAntiEntropy() throws -> [AntiEntropy] {
        let bus = InMemoryBus(topic: AntiEntropy.name(of: topic.name), partitionCount: 1)
        var all: [AntiEntropy] = []
        for node in nodes {
            try alive(node) {
                let antiEntropy = AntiEntropy(
                    engine: try start(node).engine, bus: bus, topic: topic.name,
                    log: log(options.showsLogs))
                antiEntropy.step(timeout: .zero)
                all.append(antiEntropy)
            }
        }
        return all
    }

    /// Runs checks until they find nothing more.
    ///
    /// - Returns: the number of repaired rows and columns.
    private func repair(_ all: [AntiEntropy]) throws -> Int {
        for _ in 0..<10 {
            let before = all.map(\.currentProgress.found)
            try compareAll(all)
            if all.map(\.currentProgress.found) == before { break }
        }
        return all.reduce(0) { $0 + $1.currentProgress.repaired }
    }

    /// Lets every node start one check, which all answer.
    private func compareAll(_ all: [AntiEntropy]) throws {
        for (index, antiEntropy) in all.enumerated() {
            try alive(nodes[index]) {
                guard try antiEntropy.begin(UUIDs.make(random.bytes(16))) else {
                    throw SimulationFailure(.damage, "\(nodes[index].name) can't begin a check")
                }
            }
            var quiet = false
            var rounds = 0
            while !quiet {
                rounds += 1
                if rounds > 1000 { throw SimulationFailure(.damage, "nodes answer a check without end") }
                let before = all.map(\.currentProgress)
                for (other, antiEntropy) in all.enumerated() {
                    try alive(nodes[other]) {
                        guard antiEntropy.step(timeout: .zero) else {
                            throw SimulationFailure(.damage, "\(nodes[other].name) can't check")
                        }
                    }
                }
                quiet = all.map(\.currentProgress) == before
            }
        }
    }

    /// Changes a node's file without running its triggers: loses a row or a tombstone, or sets a clock back together
    /// with its attributes.
    ///
    /// - Returns: false if there was nothing to damage.
    private func damage(_ node: SimulatedNode) throws -> Bool {
        let queue = try Connection.open(path: node.path, configuration: .init(), role: .applier)
        let what: String? = try queue.write { db in
            let tables = try Row.fetchAll(
                db, sql: "SELECT id, name FROM _martlet_entities WHERE state = 'tracked' ORDER BY id")
            let table = random.pick(tables)
            let name: String = table["name"]
            let quoted = name.quotedName
            let rows = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(quoted)") ?? 0
            switch random.below(4) {
            case 0:
                try db.execute(
                    sql: """
                        DELETE FROM _martlet_tombstones WHERE (entity, ident) IN
                        (SELECT entity, ident FROM _martlet_tombstones
                        ORDER BY entity, ident LIMIT 1 OFFSET ?)
                        """,
                    arguments: [
                        random.below(max(1, try Int.fetchOne(db, sql: "SELECT count(*) FROM _martlet_tombstones") ?? 0))
                    ])
                return db.changesCount > 0 ? "a tombstone" : nil
            case 1:
                let side = "_martlet_side_\(table["id"] as Int64)"
                let keyed = try Bool.fetchOne(
                    db, sql: "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?) WHERE name = 'row')", arguments: [side])
                guard keyed ?? false, rows > 0 else { return nil }
                try db.execute(
                    sql: """
                        UPDATE \(side) SET hlc = hlc - 1000, attrs = NULL WHERE hlc > 1000 AND row IN
                        (SELECT row FROM \(side) ORDER BY row LIMIT 1 OFFSET ?)
                        """, arguments: [random.below(rows)])
                return db.changesCount > 0 ? "a clock of \(name)" : nil
            default:
                guard rows > 0 else { return nil }
                let columns = try String.fetchAll(
                    db, sql: "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", arguments: [name])
                guard !columns.isEmpty else { return nil }
                let key = columns.map(\.quotedName).joined(separator: ", ")
                let clocked = try Self.clocked(db, name, table["id"], columns)
                try db.execute(
                    sql: """
                        DELETE FROM \(quoted) WHERE (\(key)) IN (SELECT \(key) FROM \(quoted) WHERE \(clocked)
                        ORDER BY \(key) LIMIT 1 OFFSET ?)
                        """, arguments: [random.below(rows)])
                return db.changesCount > 0 ? "a row of \(name)" : nil
            }
        }
        try queue.close()
        if let what { note("\(node.name) loses \(what)") }
        return what != nil
    }

    /// The condition for rows that other nodes know of. Nobody can miss rows that existed before the table was tracked.
    private static func clocked(_ db: Database, _ name: String, _ entity: Int64, _ key: [String]) throws -> String {
        let side = "_martlet_side_\(entity)"
        let isKeyed =
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?) WHERE name = 'row')", arguments: [side])
            ?? false
        guard isKeyed, let column = key.first else {
            return "NOT EXISTS (SELECT 1 FROM \(side) WHERE hlc = 0)"
        }
        return "\(column.quotedName) IN (SELECT row FROM \(side) WHERE hlc > 0)"
    }
}
