import GRDB

/// The unique indexes that the capture triggers know.
///
/// A row that `INSERT OR REPLACE` displaces through an index that is newer than the triggers is not noted, so no
/// trigger logs that it is gone. A program may create an index and use it before Martlet looks at the schema.
///
/// Confined to its connection, in the caller's transaction.
enum KnownIndexes {
    /// The key in `_martlet_meta` of the known indexes, by entity. Absent in a store that no such program has followed.
    private static let key = "unique_indexes"

    private static func all(_ db: Database) throws -> [Int64: [String]]? {
        try Meta.text(db, key).map { try Catalog.decode([Int64: [String]].self, $0) }
    }

    private static func current(_ db: Database) throws -> [Int64: [String]] {
        Dictionary(
            uniqueKeysWithValues: try Catalog.load(db).entities.map { entity in
                (entity.id, entity.uniqueKeys.map(text).sorted())
            })
    }

    /// Everything that decides which rows are equal to the index.
    private static func text(_ index: UniqueKey) -> String {
        let expressions = index.expressions.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return ([index.index] + index.columns + index.collations + expressions + [index.condition ?? ""])
            .joined(separator: "\n")
    }

    /// Records that the triggers know the current indexes.
    static func note(_ db: Database) throws {
        let current = try current(db)
        if try all(db) != current { try Meta.set(db, key, try Catalog.encode(current)) }
    }

    /// Returns the tracked tables that have an index which the triggers did not know until now.
    static func tablesWithNewOnes(_ db: Database) throws -> Set<Int64> {
        guard let known = try all(db) else { return [] }
        let current = try current(db)
        return Set(current.filter { id, indexes in known[id].map { !Set(indexes).isSubset(of: $0) } ?? false }.keys)
    }
}
