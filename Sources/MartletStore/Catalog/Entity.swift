/// A tracked table.
public struct Entity: Sendable, Equatable {
    /// Number of the entity in this store. Never used again for another table.
    public var id: Int64
    /// The table's name today.
    public var name: String
    /// Names that the table had before: messages from nodes that still use one are understood.
    public var formerNames: [String]
    /// The captured columns, in the order of the table. Generated columns are not among them, and neither is the
    /// integer primary key where the identity is another (``localKey``).
    public var columns: [EntityColumn]
    public var identity: IdentityRule
    /// The column that is the table's rowid under another name (`INTEGER PRIMARY KEY`).
    public var integerKey: String?
    public var isWithoutRowID: Bool
    /// Unique keys besides the integer key and the identity. The identity's is among them where the index takes
    /// different identities for one (`COLLATE NOCASE`).
    public var uniqueKeys: [UniqueKey]
    public var foreignKeys: [ForeignKey]
    /// Columns that are one register: a CHECK reads them together, or they are one foreign key. A change of one counts
    /// as a change of all, so that merging keeps the values together that one writer has seen together. By the columns'
    /// numbers in the log; none is part of the identity.
    package var registers: [Set<Int>] = []
    /// True where updates and deletes keep the values from before too.
    public var keepsOldValues: Bool
    public var uniquePolicy: UniquePolicy
    /// True where rows have names that their identity columns don't tell: each name is looked up, not worked out.
    ///
    /// Rows whose ID Martlet assigns have such names anyway.
    package var keepsNames = false
    /// True where an identity column that refers to a foreign key, and through it to an integer key of another table,
    /// is known by that row's stable ID. False in tables that earlier versions attached: there the bare number is part
    /// of the ID.
    var followsChains = false
    /// How rows were named and captured before, oldest first.
    var formerRules: [FormerRule] = []
    /// Columns that are gone, and named rows before.
    var droppedColumns: [EntityColumn] = []
    /// What columns were called that are gone here, in lower case. Nodes that still have them send their values.
    package var goneColumns: Set<String> = []
    /// The identity by places in the log, of an entity as it was: a column that is gone may have left its name to
    /// another.
    var identitySlots: [Int]?

    /// The integer primary key where each node numbers rows on its own, and rows are known by another ID.
    public var localKey: String? {
        guard let integerKey, !identityColumns.contains(where: { $0.name == integerKey }) else { return nil }
        return integerKey
    }

    /// The columns that other nodes hear of.
    package var sharedColumns: [EntityColumn] {
        columns.contains(where: \.isLocal) ? columns.filter { !$0.isLocal } : columns
    }

    /// The columns that make the stable ID. Empty where Martlet assigns it.
    public var identityColumns: [EntityColumn] {
        guard case .columns(let names) = identity else { return [] }
        if let identitySlots { return identitySlots.compactMap { slot in columns.first { $0.slot == slot } } }
        return names.compactMap { name in columns.first { $0.name == name } }
    }

    /// The columns that are one register with this one, itself among them.
    package func register(of column: EntityColumn) -> [EntityColumn] {
        guard let register = registers.first(where: { $0.contains(column.slot) }) else { return [column] }
        return columns.filter { register.contains($0.slot) }
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

    /// True where a row keeps the ID that it was inserted with, whatever becomes of its columns and of the rule.
    package var recordsNames: Bool { keepsNames || identity == .hidden }

    /// The entity as it named rows, and captured them, when this change was made.
    package func asOf(_ change: Int64) -> Entity {
        formerRules.first { change < $0.until }.map(with) ?? self
    }

    func with(_ rule: FormerRule) -> Entity {
        var entity = self
        entity.keepsOldValues = rule.keepsOldValues
        entity.keepsNames = recordsNames
        guard let slots = rule.slots else {
            entity.identity = .hidden
            return entity
        }
        for column in droppedColumns where slots.contains(column.slot) { entity.columns.append(column) }
        entity.identitySlots = slots
        entity.identity = .columns(entity.identityColumns.map(\.name))
        return entity
    }

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
    public var declaredType: String { didSet { affinity = Affinity(declaredType: declaredType) } }
    package private(set) var affinity: Affinity
    public var isNotNull: Bool
    /// The entity whose local integer key this column holds, as a foreign key.
    public var reference: String?
    /// Change ids from this one on hold values of the column.
    package var since: Int64
    /// True for a column that names rows of a table which was attached before text was taken for the number of a row:
    /// they keep their IDs.
    package var keepsTextAsItIs = false
    /// True where the column was a reference once, and is none now. Integers that it has from then are numbers of rows,
    /// which are others on each node.
    package var wasReference = false
    /// True for a column that is gone. What it held is of use for names only.
    package var isDropped = false
    /// True for a column whose values stay on this node. In the catalogs of those only who sync.
    package var isLocal = false

    package init(
        name: String, formerNames: [String], slot: Int, declaredType: String, isNotNull: Bool, reference: String?,
        since: Int64, isDropped: Bool = false
    ) {
        self.name = name
        self.formerNames = formerNames
        self.slot = slot
        self.declaredType = declaredType
        affinity = Affinity(declaredType: declaredType)
        self.isNotNull = isNotNull
        self.reference = reference
        self.since = since
        self.isDropped = isDropped
    }
}

/// What held for a table's rows before it was changed: changes that were made then are understood by it.
struct FormerRule: Sendable, Equatable, Codable {
    /// The first change to which it does not apply.
    var until: Int64
    /// The columns that made the stable ID, by their places in the log. Nil where Martlet assigned it.
    var slots: [Int]?
    var keepsOldValues: Bool
}

/// How a row is known on every node.
///
/// A rule for new rows: a row keeps the ID that it was inserted with.
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
    /// The collation of each term of the index.
    package var collations: [String]
    /// The `WHERE` of a partial index.
    package var condition: String?
    /// The expressions of the index, as SQL, by their places among its terms.
    package var expressions: [Int: String] = [:]
    /// The table's columns that an expression names, generated ones too, as they are called in the table.
    package var expressionColumns: [String] = []
    /// True where an expression is part of the index.
    package var hasExpression: Bool { !expressions.isEmpty }
    /// The settable columns from which the key is made, those behind expressions and generated columns too, in lower
    /// case.
    package var sources: Set<String>
}

/// A foreign key.
public struct ForeignKey: Sendable, Equatable {
    public var columns: [String]
    /// The table that is pointed to.
    public var target: String
    public var targetColumns: [String]
    /// True where it has an action for when the target's key changes.
    var followsUpdates = false
    /// True where rows go with their target.
    var followsDeletes = false
}
