/// A tracked table.
public struct Entity: Sendable, Equatable {
    /// Number of the entity in this store. Never used again for another table.
    public var id: Int64
    /// The table's name today.
    public var name: String
    /// Names that the table had before: messages from nodes that still use one are understood.
    public var formerNames: [String]
    /// The captured columns, in the order of the table. Generated columns are not among them, and neither is the integer
    /// primary key where the identity is another (``localKey``).
    public var columns: [EntityColumn]
    public var identity: IdentityRule
    /// The column that is the table's rowid under another name (`INTEGER PRIMARY KEY`).
    public var integerKey: String?
    public var isWithoutRowID: Bool
    /// Unique keys besides the integer key and the identity. The identity's is among them where the index takes different
    /// identities for one (`COLLATE NOCASE`).
    public var uniqueKeys: [UniqueKey]
    public var foreignKeys: [ForeignKey]
    /// True where updates and deletes keep the values from before too.
    public var keepsOldValues: Bool
    public var uniquePolicy: UniquePolicy

    /// The integer primary key where each node numbers rows on its own, and rows are known by another ID.
    public var localKey: String? {
        guard let integerKey, !identityColumns.contains(where: { $0.name == integerKey }) else { return nil }
        return integerKey
    }

    /// The columns that make the stable ID. Empty where Martlet assigns it.
    public var identityColumns: [EntityColumn] {
        guard case .columns(let names) = identity else { return [] }
        return names.compactMap { name in columns.first { $0.name == name } }
    }

    /// False for a table in the middle of a change of its schema, without what its identity is made of.
    var hasIdentity: Bool {
        switch identity {
        case .hidden: integerKey != nil
        case .columns(let names): names.count == identityColumns.count
        }
    }

    /// True where clocks are kept by the integer key, false where they are kept by stable ID.
    ///
    /// SQLite may renumber the rows of a table without an integer primary key (`VACUUM`).
    package var isKeyedByInteger: Bool { integerKey != nil }

    /// The column with this name, or with this name before a renaming.
    public func column(named name: String) -> EntityColumn? {
        columns.first { $0.name == name } ?? columns.first { $0.formerNames.contains(name) }
    }
}

/// A table that was tracked, and isn't any more.
public struct LostEntity: Sendable, Equatable {
    /// The table's name when it was last seen.
    public var name: String
    public var reason: String
}

/// A captured column.
public struct EntityColumn: Sendable, Equatable {
    public var name: String
    public var formerNames: [String]
    /// Which of the log's columns `c1`, `c2`, ... holds the values. Never used again for another column.
    package var slot: Int
    public var declaredType: String
    public var isNotNull: Bool
    /// The entity whose local integer key this column holds, as a foreign key.
    public var reference: String?
    /// Change ids from this one on hold values of the column.
    package var since: Int64
}

/// How a row is known on every node.
public enum IdentityRule: Sendable, Equatable, Codable {
    /// By a UUID that Martlet assigns.
    case hidden
    /// By the values of these columns, in this order.
    case columns([String])
}

/// Which of two rows keeps a unique key that both claim.
public enum UniquePolicy: String, Sendable, Codable, CaseIterable {
    /// The row that claimed it last.
    case keepNewest
    /// The row that claimed it first.
    case keepOldest
}

/// A unique key.
public struct UniqueKey: Sendable, Equatable {
    /// The index that enforces it.
    public var index: String
    public var columns: [String]
    /// The collation of each column in the index.
    package var collations: [String]
    /// The `WHERE` of a partial index.
    package var condition: String?
    /// True where an expression is part of the index.
    package var hasExpression: Bool
}

/// A foreign key.
public struct ForeignKey: Sendable, Equatable {
    public var columns: [String]
    /// The table that is pointed to.
    public var target: String
    public var targetColumns: [String]
}
