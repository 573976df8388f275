import GRDB
import MartletStore
import MartletSync

/// What is checked after every step.
extension Simulation {
    /// Looks at the node as any other program would.
    func check(_ node: SimulatedNode) throws {
        guard let open = node.open else { return }
        try open.other.read { db in
            let sums = try Row.fetchOne(db, sql: Transfers.check).map { row in (0..<3).map { row[$0] as Int } } ?? []
            guard try sums == [0, 0, 0] || isLoading(db) else {
                throw SimulationFailure(
                    .transfers,
                    "\(node.name) shows a transaction in part: entries add up to \(sums[0]), \(sums[1]) purses and \(sums[2]) pairs are wrong"
                )
            }
            let own = try Int.fetchOne(
                db, sql: "SELECT count(*) FROM sim_write WHERE id >= ? AND id < ?",
                arguments: [node.prefix, node.prefix + ":"])
            guard own == node.written.count - node.inherited else {
                throw SimulationFailure(
                    .lostWrite,
                    "\(node.name) committed \(node.written.count - node.inherited) transactions, and \(own ?? 0) are in its file"
                )
            }
            let mark =
                try Int64.fetchOne(
                    db, sql: "SELECT id FROM _martlet_log WHERE e = 0 ORDER BY id DESC LIMIT 1") ?? 0
            guard mark >= node.highestMark else {
                throw SimulationFailure(.tokens, "\(node.name)'s newest token went from \(node.highestMark) to \(mark)")
            }
            node.highestMark = mark
        }
        if let problem = topic.published.problem { throw SimulationFailure(.messages, problem) }
    }

    /// What was sent as it should be can be understood, and is taken, if it does not come too late.
    func checkUnderstood(_ report: ApplyReport, _ node: SimulatedNode) throws {
        guard report.quarantined > 0, plan.faults.isDisjoint(with: [.corruption, .collect]) else { return }
        throw SimulationFailure(.quarantine, "\(node.name) does not understand a message that nothing has damaged")
    }

    /// Reads what is new in the history, as a program does that wants to know what was done here.
    func readHistory(_ node: SimulatedNode) throws {
        let open = try start(node)
        let found: [HistoryTransaction]
        do {
            found = try open.store.fetchHistory(
                HistoryQuery(after: node.token, author: .notEqual(TransactionAuthor.sync)))
        } catch let error as StoreError where error.code == .historyTokenExpired && node.life > 0 {
            // The store has another name since.
            node.forgetReaders()
            note("reads its history from the beginning")
            return try readHistory(node)
        }
        for transaction in found {
            guard node.token.map({ $0 < transaction.token }) ?? true else {
                throw SimulationFailure(.tokens, "\(node.name)'s tokens don't ascend")
            }
            node.token = transaction.token
            var ids: [String] = []
            for change in transaction.changes where change.entity == "sim_write" {
                guard change.kind == .insert, case .text(let id) = change.values["id"] else {
                    throw SimulationFailure(.history, "\(node.name)'s history has a \(change.kind) of sim_write")
                }
                ids.append(id)
            }
            guard ids.count == 1 || (ids.count > 1 && transaction.author == nil) else {
                throw SimulationFailure(
                    .history,
                    "\(node.name)'s history has a transaction of \(ids.count) programs by \(transaction.author ?? "nobody")"
                )
            }
            node.read += ids.map { SimulatedNode.LocalWrite(id: $0, author: transaction.author) }
        }
        note("reads its history: \(found.count) transactions")
        guard node.read.count <= node.written.count, zip(node.read, node.written).allSatisfy(==) else {
            throw SimulationFailure(.history, "\(node.name)'s history is not what was done there")
        }
    }
}
