import Foundation
import GRDB
import MartletStore
import MartletSync

/// The checks once faults have stopped and all nodes have received everything.
extension Simulation {
    func finish() throws {
        if plan.faults.contains(.restamp) {
            // What is replaced must not come into force before its replacement has arrived.
            random = SplitMix(seed: seed)
            try endFaults()
            try exchangeAll()
        }
        // Late enough that no clock value lies in the future.
        time.milliseconds += 10 * 86_400_000
        random = SplitMix(seed: seed)
        try endFaults()
        try awaitRows()
        try replaceLostSnapshots()
        try exchangeAll()
        try reportAll()
        var wasAnyQuarantined = false
        for node in nodes { try alive(node) { if try emptyQuarantine(node) { wasAnyQuarantined = true } } }
        if wasAnyQuarantined { try exchangeAll() }
        try checkLeftOut()
        try checkDamage()
        for node in nodes {
            try alive(node) {
                try readHistory(node)
                try checkEnd(node)
            }
            try check(node)
        }
        try checkAgreement()
        try checkPending()
        try checkOracle()
        for node in nodes { try alive(node) { try checkFiles(node) } }
    }

    /// Lets the time pass after which rows that a program has not brought back count as deleted.
    private func awaitRows() throws {
        guard options.features.contains(.recreations) else { return }
        for node in nodes { try alive(node) { try start(node).store.closeForeignTransactions() } }
        time.milliseconds += 2 * RecreatedTables.patience.wholeMilliseconds
    }

    private func endFaults() throws {
        for node in nodes {
            node.clock.correct()
            node.idleSteps = 0
            node.room = nil
            node.link.isCut = false
            node.snapshotLink.isCut = false
            node.link.reorders = false
            node.link.losesConnections = false
            node.snapshotLink.losesConnections = false
            node.snapshotLink.reorders = false
            node.link.corruptCount = 0
            try alive(node) { try finishRecreation(node) }
            try alive(node) { try upgradeFully(node) }
            // A program that has copied a table gives up. Otherwise rows that refer to rows in an untracked copy would
            // lose their targets.
            try alive(node) { try start(node).other.write { try $0.execute(sql: TableRebuilder.dropCopy) } }
        }
    }

    /// Publishes and consumes on all nodes, until none of them has anything left in a whole round.
    ///
    /// - Returns: true if there was anything.
    @discardableResult
    func exchangeAll() throws -> Bool {
        for round in 0..<60 {
            var isQuiet = true
            for node in nodes {
                try alive(node) { if try exchange(node) { isQuiet = false } }
            }
            if isQuiet { return round > 0 }
        }
        throw SimulationFailure(.held, "nodes keep exchanging messages without end")
    }

    /// - Returns: true if anything happened.
    private func exchange(_ node: SimulatedNode) throws -> Bool {
        let open = try start(node)
        guard try isSure(node) else { return true }
        var happened = false
        var idle = 0
        var rounds = 0
        while idle < 3 {
            rounds += 1
            let sent = open.publisher.step()
            node.link.producer?.store(.max)
            node.link.producer?.answer()
            let report = open.consumer.step(timeout: .zero)
            if open.consumer.lastFailure?.code == .copied {
                node.crash()
                return true
            }
            if let report { try checkUnderstood(report, node) }
            idle = sent || report != ApplyReport() ? 0 : idle + 1
            if idle == 0 { happened = true }
            if rounds > 2000 {
                let problem = open.consumer.currentProgress.problem ?? open.publisher.currentProgress.problem
                throw SimulationFailure(.held, "\(node.name) does not settle: \(problem ?? "no reason")")
            }
        }
        return happened
    }

    /// Retries quarantined messages: those that turn out valid leave the quarantine, and unreadable ones are discarded,
    /// as a person would do.
    ///
    /// - Returns: true if there was anything.
    private func emptyQuarantine(_ node: SimulatedNode) throws -> Bool {
        let open = try start(node)
        let before = try open.store.quarantined().count
        let report = try open.engine.retryQuarantined()
        let left = try open.store.quarantined()
        guard before == report.applied + report.parked + report.superseded + report.kept, left.count == report.kept
        else {
            throw SimulationFailure(.quarantine, "\(node.name) lists \(left.count) messages, but kept \(report.kept)")
        }
        guard left.isEmpty || plan.faults.contains(.corruption) else {
            throw SimulationFailure(.quarantine, "\(node.name) refuses what nobody republishes: \(left[0].reason)")
        }
        for message in left { _ = try open.store.discardQuarantined(message.id) }
        if before > 0 { note("\(node.name)'s quarantine: \(before), of which \(left.count) are discarded") }
        return before > 0
    }

    private func checkEnd(_ node: SimulatedNode) throws {
        guard node.read == node.written else {
            throw SimulationFailure(
                .history, "\(node.name)'s history has \(node.read.count) of \(node.written.count) transactions")
        }
        let open = try start(node)
        let status = try SyncStatus.read(open.store)
        if let gap = status.origins.first(where: { !$0.gaps.isEmpty }) {
            throw SimulationFailure(
                .convergence, "\(node.name) still misses \(gap.gaps) of \(gap.name ?? "a node"), which published them")
        }
        guard status.unpublished == 0, status.lastSequence == status.acknowledged else {
            throw SimulationFailure(.convergence, "\(node.name) has \(status.unpublished) transactions to publish")
        }
        try checkWritten(node, open)
        try checkAppliedOnce(node, open)
        // Changes that violate constraints which merging doesn't resolve may stay pending, but then on all nodes.
        let reasons: [ParkReason] =
            schema.isGenerated ? [.missingTarget, .unique, .constraint] : [.missingTarget, .unique]
        for item in try open.store.parked() where !reasons.contains(item.reason) {
            throw SimulationFailure(
                .parked, "\(node.name) still parks \(item.entity ?? "a transaction"): \(item.reason.rawValue)")
        }
        // The remaining chunks of a store that was replaced meanwhile never arrive.
        let chunks = try open.other.read {
            try Data.fetchAll($0, sql: "SELECT origin FROM _martlet_chunks").filter {
                !retired.contains(NodeID(bytes: $0)?.description ?? "")
            }.count
        }
        guard chunks == 0 else { throw SimulationFailure(.messages, "\(node.name) still keeps \(chunks) chunks") }
        let parts = try open.other.read {
            try Int.fetchOne(
                $0,
                sql: """
                    SELECT count(*) FROM _martlet_payload_parts WHERE owner NOT IN
                    (SELECT id FROM _martlet_deferred UNION ALL SELECT -id FROM _martlet_quarantine)
                    """) ?? 0
        }
        guard parts == 0 else {
            throw SimulationFailure(.messages, "\(node.name) keeps \(parts) parts of payloads that belong to nothing")
        }
    }

    /// Checks that every transaction that was committed on any node is in this node's file.
    private func checkWritten(_ node: SimulatedNode, _ open: SimulatedNode.Open) throws {
        let here = try open.other.read { Set(try String.fetchAll($0, sql: "SELECT id FROM sim_write")) }
        for other in nodes {
            for write in other.written where !here.contains(write.id) {
                throw SimulationFailure(.lostWrite, "\(write.id) of \(other.name) is not on \(node.name)")
            }
        }
        let all = nodes.reduce(into: returning) { $0.formUnion($1.written.map(\.id)) }
        guard here == all else {
            let lost = all.subtracting(here).sorted()
            throw SimulationFailure(
                .lostWrite,
                "\(node.name) has \(here.count) of \(all.count) committed transactions; it lacks \(lost)")
        }
    }

    /// Checks that each transaction of another node is in the history once. Changes that were pending on a migration
    /// are applied later, in transactions of their own.
    private func checkAppliedOnce(_ node: SimulatedNode, _ open: SimulatedNode.Open) throws {
        var seen: Set<String> = []
        for transaction in try open.store.fetchHistory(HistoryQuery(author: .equal(TransactionAuthor.sync))) {
            guard transaction.origin != nil else { continue }
            // A republished change has no effect where it is known.
            for change in transaction.changes where change.entity == "sim_write" && change.kind == .insert {
                guard case .text(let id) = change.values["id"], seen.insert(id).inserted else {
                    throw SimulationFailure(.appliedTwice, "\(node.name) applied a transaction twice")
                }
            }
        }
    }

    /// References to rows that never existed. A row that a program has written with such a reference stays on the node
    /// where it was written, and is pending elsewhere.
    func awaitedNames() throws -> Set<Value> {
        var names: Set<Value> = []
        for node in nodes {
            try alive(node) {
                for entity in try start(node).store.trackedEntities() where entity.integerKey != nil {
                    let reserved = try start(node).other.read { db in
                        try Data.fetchAll(
                            db,
                            sql: """
                                SELECT s.ident FROM \(InternalName.side(entity.id)) AS s
                                WHERE s.ident IS NOT NULL AND \(ReservedRows.isReserved(entity))
                                """)
                    }
                    names.formUnion(
                        reserved.map {
                            .reference(Reference(entity: entity.name, identity: StableID(bytes: Array($0))))
                        })
                }
            }
        }
        return names
    }

    /// Checks that the same changes are pending on all nodes, for the same reason.
    private func checkPending() throws {
        guard schema.isGenerated else { return }
        var all: [[ParkedItem]] = []
        var entities: [Entity] = []
        for node in nodes {
            try alive(node) {
                let store = try start(node).store
                entities = try store.trackedEntities()
                // A row without a stable ID is pending on its own node only.
                all.append(try store.parked().filter { $0.identity?.bytes.first != 0 })
            }
        }
        let excused = ExcusedRows(all.flatMap(\.self), entities, awaiting: try awaitedNames())
        let waiting = all.map { items in
            items.filter { !excused.contains($0) }.map { item in
                "\(item.entity ?? "?") \(item.identity.map(ValueText.text) ?? "?")"
                    + (item.id.hasPrefix("p") ? " \(item.values.keys.sorted().joined(separator: ","))" : "")
                    + " (\(item.reason.rawValue))"
            }.sorted()
        }
        for (node, pending) in zip(nodes, waiting) where pending != waiting[0] {
            let different = Set(pending).symmetricDifference(waiting[0]).sorted().prefix(5)
            throw SimulationFailure(
                .parked,
                "\(node.name) and \(nodes[0].name) park different changes: \(different.joined(separator: "; "))")
        }
    }

    private func checkAgreement() throws {
        var digests: [StoreDigest] = []
        for node in nodes { try alive(node) { digests.append(try StoreDigest.compute(try start(node).store)) } }
        for (node, digest) in zip(nodes, digests) {
            note("\(node.name)'s digest is \(digest.digest)")
            guard digest != digests[0] else { continue }
            let names = zip(digest.entities, digests[0].entities).filter { $0 != $1 }.map { $0.0.name }
            throw SimulationFailure(
                .digest, "\(node.name) and \(nodes[0].name) differ in \(names.joined(separator: ", "))")
        }
    }

    /// Returns true if a broken reference, as reported by `foreign_key_check`, is to a row that never existed: it stays
    /// where a program has written it.
    private func isWritten(_ broken: Row, _ db: Database, _ entities: [Entity]) throws -> Bool {
        let table: String = broken["table"]
        guard let rowid = broken["rowid"] as Int64? else { return false }
        let keys = try Row.fetchAll(db, sql: "PRAGMA foreign_key_list(\(table.quotedName))")
        let columns = keys.filter { ($0["id"] as Int64) == broken["fkid"] }
        guard columns.count == 1, let target = entities.first(where: { $0.name == columns[0]["table"] }) else {
            return false
        }
        let column: String = columns[0]["from"]
        return try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM \(table.quotedName) AS t
                JOIN \(InternalName.reserved) AS r ON r.row = t.\(column.quotedName)
                WHERE t.rowid = ? AND r.entity = ?)
                """, arguments: [rowid, target.id]) ?? false
    }

    private func checkFiles(_ node: SimulatedNode) throws {
        let open = try start(node)
        try checkDerived(node, open)
        try open.other.read { db in
            let entities = try open.store.trackedEntities()
            let broken = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").filter { row in
                try !isWritten(row, db, entities)
            }.count
            guard broken == 0 else { throw SimulationFailure(.files, "\(node.name) has \(broken) broken foreign keys") }
            let integrity = try String.fetchOne(db, sql: "PRAGMA integrity_check")
            guard integrity == "ok" else { throw SimulationFailure(.files, "\(node.name): \(integrity ?? "?")") }
        }
        guard try open.engine.audit().isClean else {
            throw SimulationFailure(.files, "\(node.name) has rows that its history lacks")
        }
    }
}
