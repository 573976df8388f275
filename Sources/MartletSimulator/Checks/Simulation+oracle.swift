import GRDB
import MartletStore
import MartletSync

/// Compares the contents of the tables with the oracle's.
extension Simulation {
    func checkOracle() throws {
        var oracle = Oracle(today: schema.today)
        for (entity, rows) in initial {
            for (identity, values) in rows { oracle.begin(entity, identity, values) }
        }
        let all = try topic.published.transactions()
        try checkSequences(all)
        let published = Oracle.counting(all)
        for transaction in published { oracle.take(transaction) }
        try checkJournals(published)
        var expected: Rows?
        let awaited = try awaitedNames()
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
                    guard let expected else { return note("the oracle can't predict the contents of the tables") }
                    // A reference to a row that never existed stays where a program has written it.
                    let rows = try contents.rows().mapValues { rows in
                        rows.mapValues { values in values.filter { !awaited.contains($0.value) } }
                    }
                    try compare(node, rows, expected)
                }
            }
        }
    }

    /// Checks that a value can be restored if somebody overruled it without having seen it.
    private func checkJournals(_ published: [PublishedTransaction]) throws {
        var overruled = OverruledValues(today: schema.today)
        for transaction in published { overruled.take(transaction) }
        var journaled: Set<OverruledValues.Place> = []
        for node in nodes {
            try alive(node) {
                for conflict in try start(node).store.conflicts() {
                    guard let column = conflict.column else { continue }
                    journaled.insert(
                        OverruledValues.Place(
                            name: Oracle.Name(entity: conflict.entity, identity: conflict.identity), column: column,
                            stamp: conflict.loser))
                }
            }
        }
        let lost = overruled.all.filter { !journaled.contains($0.key) }.map { place, value in
            """
            \(place.name.entity) \(ValueText.text(place.name.identity)): \(place.column) was \(ValueText.text(value)) \
            at \(place.stamp)
            """
        }
        guard lost.isEmpty else {
            throw SimulationFailure(
                .lostWrite,
                "no conflict journal has these overruled values: \(lost.sorted().prefix(5).joined(separator: "; "))")
        }
    }

    /// Checks that an origin's transactions are numbered from 1, without a gap.
    private func checkSequences(_ published: [PublishedTransaction]) throws {
        for (origin, all) in Dictionary(grouping: published, by: \.origin) {
            let sequences = all.map(\.sequence).sorted()
            guard sequences == Array(1...Int64(sequences.count)) else {
                throw SimulationFailure(.messages, "the transactions of \(origin) are not numbered without gaps")
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
                    """
                    \(ValueText.text(identity)) should be \(ValueText.text(wanted[identity])), but is \
                    \(ValueText.text(found[identity]))
                    """
                )
            }
            throw SimulationFailure(.oracle, "\(entity) of \(node.name): " + lines.prefix(5).joined(separator: "; "))
        }
    }
}
