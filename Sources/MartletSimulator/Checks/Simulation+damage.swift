import Foundation
import GRDB
import MartletStore
import MartletSync

/// What becomes of a damage that Martlet does not see: nodes that agree find nothing, and then find it, and mend it.
extension Simulation {
    func checkDamage() throws {
        guard plan.faults.contains(.damage) else { return }
        let checkers = try makeCheckers()
        try compareAll(checkers)
        guard checkers.allSatisfy({ $0.currentProgress.found == 0 }) else {
            throw SimulationFailure(.damage, "a check finds a divergence between nodes that agree")
        }
        // Nobody tells what triggers keep of a row that is lost.
        guard !schema.keepsDerived else { return }
        // Of one node: what all of them have lost is gone.
        let node = random.pick(nodes)
        var count = 0
        for _ in 0..<1 + random.below(4) {
            try alive(node) { if try damage(node) { count += 1 } }
        }
        guard count > 0 else { return }
        note("\(count) damages, \(try mend(checkers)) rows and columns repaired")
    }

    /// Brings by checks what was left out of snapshots, as nodes do that forget what was deleted.
    func checkLeftOut() throws {
        let names = nodes.filter(\.hasLeftOut).map(\.name)
        guard !names.isEmpty else { return }
        let mended = try mend(makeCheckers())
        note("\(names.joined(separator: ", ")) skipped rows of snapshots; \(mended) rows and columns repaired")
    }

    private func makeCheckers() throws -> [Checker] {
        let bus = InMemoryBus(topic: Checker.name(of: topic.name), partitionCount: 1)
        var checkers: [Checker] = []
        for node in nodes {
            try alive(node) {
                let checker = Checker(
                    engine: try start(node).engine, bus: bus, topic: topic.name,
                    log: log(options.showsLogs))
                checker.step(timeout: .zero)
                checkers.append(checker)
            }
        }
        return checkers
    }

    /// Checks until nothing more is found.
    ///
    /// - Returns: how many rows and columns were mended.
    private func mend(_ checkers: [Checker]) throws -> Int {
        for _ in 0..<10 {
            let before = checkers.map(\.currentProgress.found)
            try compareAll(checkers)
            if checkers.map(\.currentProgress.found) == before { break }
        }
        return checkers.reduce(0) { $0 + $1.currentProgress.mended }
    }

    /// Every node begins a check once, and all answer.
    private func compareAll(_ checkers: [Checker]) throws {
        for (index, checker) in checkers.enumerated() {
            try alive(nodes[index]) {
                guard try checker.begin(UUIDs.make(random.bytes(16))) else {
                    throw SimulationFailure(.damage, "\(nodes[index].name) can't begin a check")
                }
            }
            var quiet = false
            while !quiet {
                let before = checkers.map(\.currentProgress)
                for (other, checker) in checkers.enumerated() {
                    try alive(nodes[other]) {
                        guard checker.step(timeout: .zero) else {
                            throw SimulationFailure(.damage, "\(nodes[other].name) can't check")
                        }
                    }
                }
                quiet = checkers.map(\.currentProgress) == before
            }
        }
    }

    /// Changes a node's file as nothing does that runs its triggers: a row is lost, or a tombstone, or a clock set back
    /// together with what it is of.
    ///
    /// - Returns: false where there was nothing to damage.
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
                        DELETE FROM _martlet_tombstones WHERE (entity, ident) IN (SELECT entity, ident FROM _martlet_tombstones
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

    /// Rows that others were told of. What was there before the table was tracked can't be missed by anybody.
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
