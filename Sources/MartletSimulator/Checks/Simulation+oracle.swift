import GRDB
import MartletStore
import MartletSync

/// What is in the tables, against what the oracle says.
extension Simulation {
    func checkOracle() throws {
        var oracle = Oracle(today: schema.today)
        for (entity, rows) in initial {
            for (identity, values) in rows { oracle.begin(entity, identity, values) }
        }
        let published = try topic.published.transactions()
        try checkSequences(published)
        for transaction in published { oracle.take(transaction) }
        var expected: Rows?
        for node in nodes {
            try alive(node) {
                let store = try start(node).store
                let pending = try store.parked()
                try store.database.read { db in
                    let contents = try Contents(db)
                    if expected == nil {
                        expected = oracle.tables(contents.entities, defaults: try contents.defaults())
                    }
                    if schema.isGenerated {
                        let problem = oracle.problem(
                            with: try contents.rows(), pending: pending, contents.entities,
                            defaults: try contents.defaults())
                        if let problem { throw SimulationFailure(.oracle, "\(node.name): \(problem)") }
                    }
                    guard let expected else { return note("the oracle can't tell what is in the tables") }
                    try compare(node, try contents.rows(), expected)
                }
            }
        }
    }

    /// An origin's transactions are numbered from 1, without a hole.
    private func checkSequences(_ published: [PublishedTransaction]) throws {
        for (origin, all) in Dictionary(grouping: published, by: \.origin) {
            let sequences = all.map(\.sequence).sorted()
            guard sequences == Array(1...Int64(sequences.count)) else {
                throw SimulationFailure(.messages, "the transactions of \(origin) are not numbered one by one")
            }
        }
    }

    private func compare(_ node: SimulatedNode, _ rows: Rows, _ expected: Rows) throws {
        for entity in expected.keys.sorted() {
            let wanted = expected[entity] ?? [:]
            let found = rows[entity] ?? [:]
            guard wanted != found else { continue }
            var lines: [String] = []
            let order = { (a: StableID, b: StableID) in a.bytes.lexicographicallyPrecedes(b.bytes) }
            for identity in Set(wanted.keys).union(found.keys).sorted(by: order) {
                guard wanted[identity] != found[identity] else { continue }
                lines.append(
                    "\(ValueText.text(identity)) should be \(ValueText.text(wanted[identity])), and is \(ValueText.text(found[identity]))"
                )
            }
            throw SimulationFailure(.oracle, "\(entity) of \(node.name): " + lines.prefix(5).joined(separator: "; "))
        }
    }
}
