import GRDB

/// A column that holds the row number of another table, but is not synced as a reference to that row: only its name
/// suggests the reference, or the other table is not tracked.
///
/// If Martlet assigns the IDs, each node numbers rows on its own, so the number means another row on another node. Only
/// a declared reference is synced as the row that it means.
package struct UndeclaredReference: Sendable, Equatable {
    package var table: String
    package var column: String
    package var target: String
    /// False if the table declares the reference, but to a table that is not tracked.
    package var isTracked = true

    package var warning: String {
        isTracked ? undeclared : untracked
    }

    private var untracked: String {
        """
        Column \(column) of table \(table) refers to \(target), which is not tracked: on another node the number may \
        mean another row. Attach \(target), too, unless its rows have the same numbers on all nodes.
        """
    }

    private var undeclared: String {
        """
        Column \(column) of table \(table) looks like a reference to \(target), whose rows each node numbers on its \
        own, but no foreign key declares it: on another node the number may mean another row. Declare the foreign key, \
        or give \(target) an identity that is the same on all nodes (--identity \(target)=COLUMN), and refer to that.
        """
    }

    /// Returns undeclared references, in the order of tables and columns.
    package static func all(_ entities: [Entity]) -> [UndeclaredReference] {
        let targets = entities.filter { $0.localKey != nil }
        return entities.flatMap { entity in
            entity.columns.compactMap { column in
                guard column.reference == nil, mayHoldNumbers(column),
                    !entity.foreignKeys.contains(where: { key in
                        key.columns.contains { $0.lowercased() == column.name.lowercased() }
                    }),
                    let target = targets.first(where: { names(of: $0.name).contains(folded(column.name)) })
                else { return nil }
                return UndeclaredReference(table: entity.name, column: column.name, target: target.name)
            }
        }
    }

    /// Returns declared references to the integer keys of tables that are not tracked, in the order of tables and
    /// columns.
    static func untracked(_ db: Database, _ entities: [Entity]) throws -> [UndeclaredReference] {
        let inspector = TableInspector(db)
        let tracked = Set(entities.map { $0.name.lowercased() })
        return try entities.flatMap { entity in
            try entity.foreignKeys.compactMap { key in
                guard !tracked.contains(key.target.lowercased()), key.columns.count == 1,
                    let target = try inspector.name(ignoringCase: key.target).flatMap({ try inspector.table($0) }),
                    let number = target.integerKey,
                    key.targetColumns.allSatisfy({ $0.lowercased() == number.lowercased() })
                else { return nil }
                return UndeclaredReference(
                    table: entity.name, column: key.columns[0], target: target.name, isTracked: false)
            }
        }
    }

    private static func mayHoldNumbers(_ column: EntityColumn) -> Bool {
        let type = column.declaredType.uppercased()
        return type.isEmpty || type.contains("INT") || type.contains("NUM")
    }

    /// Treats `post_id`, `postId` and `PostID` as equal.
    private static func folded(_ name: String) -> String { name.lowercased().replacing("_", with: "") }

    /// Returns likely names of columns that refer to a table of this name, which may be a plural or have a prefix.
    private static func names(of table: String) -> Set<String> {
        let words = table.lowercased().split(separator: "_").map(String.init)
        var bases: Set<String> = []
        for start in words.indices { bases.insert(words[start...].joined()) }
        for base in bases {
            if base.hasSuffix("ies") { bases.insert(base.dropLast(3) + "y") }
            if base.hasSuffix("es") { bases.insert(String(base.dropLast(2))) }
            if base.hasSuffix("s") { bases.insert(String(base.dropLast())) }
        }
        return Set(bases.map { $0 + "id" })
    }
}
