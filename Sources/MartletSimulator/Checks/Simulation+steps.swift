import GRDB
import MartletStore
import MartletSync

/// The checks after every step.
extension Simulation {
    /// Checks the node's file as any other program would see it.
    func check(_ node: SimulatedNode) throws {
        guard let open = node.open else { return }
        // A single statement is a transaction of its own.
        try open.other.inDatabase { db in
            let found =
                try Row.fetchOne(db.cachedStatement(sql: Self.stepCheck), arguments: [node.prefix, node.prefix + ":"])
                .map { row in (0..<5).map { row[$0] as Int64 } } ?? []
            guard try found[..<3] == [0, 0, 0] || isLoading(db) else {
                throw SimulationFailure(
                    .transfers,
                    """
                    \(node.name) shows part of a transaction: entries add up to \(found[0]), \(found[1]) purses and \
                    \(found[2]) pairs are wrong
                    """
                )
            }
            guard found[3] == node.written.count - node.inherited else {
                throw SimulationFailure(
                    .lostWrite,
                    """
                    \(node.name) committed \(node.written.count - node.inherited) transactions, but \(found[3]) are in \
                    its file
                    """
                )
            }
            guard found[4] >= node.highestMark else {
                throw SimulationFailure(
                    .tokens, "\(node.name)'s newest token went from \(node.highestMark) to \(found[4])")
            }
            node.highestMark = found[4]
        }
        if let problem = topic.published.problem { throw SimulationFailure(.messages, problem) }
    }

    /// The sums of transfers, the number of transactions of one node, and the newest token.
    private static let stepCheck = """
        \(Transfers.check), (SELECT count(*) FROM sim_write WHERE id >= ?1 AND id < ?2),
        coalesce((SELECT id FROM _martlet_log WHERE e = 0 ORDER BY id DESC LIMIT 1), 0)
        """

    /// Checks that intact messages are accepted, unless they may arrive too late.
    func checkUnderstood(_ report: ApplyReport, _ node: SimulatedNode) throws {
        guard report.quarantined > 0, plan.faults.isDisjoint(with: [.corruption, .collect]) else { return }
        throw SimulationFailure(.quarantine, "\(node.name) quarantined a message that nothing has damaged")
    }

    /// Reads new transactions in the history, like a program that wants to know what was done on this node.
    func readHistory(_ node: SimulatedNode) throws {
        let open = try start(node)
        let found: [HistoryTransaction]
        do {
            found = try open.store.fetchHistory(
                HistoryQuery(after: node.token, author: .notEqual(TransactionAuthor.sync)))
        } catch let error as StoreError where error.code == .historyTokenExpired && node.life > 0 {
            // The store has got another ID since.
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
            // Changes that an audit finds in a rebuilt table form a transaction of their own.
            let isFound =
                ids.isEmpty && schema.isGenerated
                && !options.features.isDisjoint(with: SchemaFeature.foundByComparison)
            guard ids.count == 1 || ((ids.count > 1 || isFound) && transaction.author == nil) else {
                throw SimulationFailure(
                    .history,
                    """
                    \(node.name)'s history has a transaction of \(ids.count) programs by \
                    \(transaction.author ?? "nobody")
                    """)
            }
            node.read += ids.map { SimulatedNode.LocalWrite(id: $0, author: transaction.author) }
        }
        note("reads its history: \(found.count) transactions")
        guard node.read.count <= node.written.count, zip(node.read, node.written).allSatisfy(==) else {
            throw SimulationFailure(.history, "\(node.name)'s history does not match what was done there")
        }
    }
}
