import GRDB

/// A part of a table's schema that reads an integer key which each node assigns on its own.
///
/// SQLite evaluates it with a different number on each node. What one node accepts, another may refuse, and a value
/// that is computed from the number differs.
package struct NumberedRule: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case check
        case uniqueIndex(String)
        case generatedColumn(String)
    }

    package var table: String
    package var key: String
    package var kind: Kind

    package var warning: String {
        switch kind {
        case .check:
            """
            A CHECK of table \(table) reads \(key), \(numbered): another node may refuse, and park, a row that one \
            node accepts. \(remedy)
            """
        case .uniqueIndex(let name):
            """
            The unique index \(name) of table \(table) is made from \(key), \(numbered): rows that don't conflict on \
            one node may conflict on another. \(remedy)
            """
        case .generatedColumn(let name):
            "Column \(name) of table \(table) is made from \(key), \(numbered): its value differs by node. \(remedy)"
        }
    }

    private var numbered: String { "which each node numbers on its own" }

    private var remedy: String {
        """
        If \(key) means the same row on all nodes, attach the table with --identity \(table)=\(key) before it has \
        rows; otherwise use another column.
        """
    }

    /// Returns the rules in the order of tables, and the CHECKs of a table first.
    static func all(_ db: Database, _ entities: [Entity]) throws -> [NumberedRule] {
        let inspector = TableInspector(db)
        return try entities.flatMap { entity -> [NumberedRule] in
            guard let key = entity.localKey, let table = try inspector.table(entity.name) else { return [] }
            let name = key.lowercased()
            var kinds: [Kind] = table.checks.contains { $0.contains(name) } ? [.check] : []
            // SQLite has no index for the key itself.
            kinds += table.uniqueKeys.filter { $0.sources.contains(name) }.map { .uniqueIndex($0.index) }
            kinds += table.columns.filter { table.generated[$0.name.lowercased()]?.contains(name) ?? false }
                .map { .generatedColumn($0.name) }
            return kinds.map { NumberedRule(table: entity.name, key: key, kind: $0) }
        }
    }
}
