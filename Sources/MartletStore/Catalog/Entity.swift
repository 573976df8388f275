/// A tracked table.
public struct Entity: Sendable, Equatable {
    /// The entity's ID in this store. Never reused for another table.
    public var id: Int64
    /// The table's name today.
    public var name: String
    /// Names that the table had before. Messages from nodes that still use one are understood.
    public var formerNames: [String]
    /// The captured columns, in the order of the table. Without generated columns, and without the integer primary key
    /// if the identity is another (``localKey``).
    public var columns: [EntityColumn]
    public var identity: IdentityRule
    /// The column that is an alias for the table's rowid (`INTEGER PRIMARY KEY`).
    public var integerKey: String?
    public var isWithoutRowID: Bool
    /// Unique keys besides the integer key and the identity. Includes the identity's key if its index treats different
    /// identities as equal (`COLLATE NOCASE`).
    public var uniqueKeys: [UniqueKey]
    public var foreignKeys: [ForeignKey]
    /// Groups of columns that form one register: a CHECK reads them together, or they form one foreign key. A change of
    /// one counts as a change of all, so that a merge keeps values together that one writer has seen together.
    /// Identified by slot in the log. None is part of the identity.
    package var registers: [Set<Int>] = []
    /// Whether SQLite never gives the number of a deleted row to another one (`AUTOINCREMENT`).
    package var isAutoincrement = false
    /// Whether the table refuses two rows with the same values in the identity columns. A program may drop the index
    /// that does. True if there are no such columns.
    package var hasUniqueIdentity = true
    /// Whether foreign keys that refer to the table have actions.
    var causesActions = false
    /// Whether the log also keeps the values from before updates and deletes.
    public var keepsOldValues: Bool
    public var uniquePolicy: UniquePolicy
    /// Whether rows have IDs that their identity columns don't tell: each ID is looked up, not computed.
    ///
    /// Rows whose ID Martlet assigns have such IDs anyway.
    package var keepsNames = false
    /// Whether the identity follows chains of references: an identity column that refers to a foreign-key column, and
    /// through it to an integer key of another table, is represented by that row's stable ID. False for tables that
    /// earlier versions attached: there the bare number is part of the ID.
    var followsChains = false
    /// The former rules of identity and capture, oldest first.
    var formerRules: [FormerRule] = []
    /// Dropped columns that were part of the identity before.
    var droppedColumns: [EntityColumn] = []
    /// The names of columns that were dropped here, in lower case. Nodes that still have them send their values.
    package var goneColumns: Set<String> = []
    /// The slots of the identity columns, for a former state of an entity: a dropped column may have left its name to
    /// another one.
    var identitySlots: [Int]?

    /// The integer primary key, if each node numbers rows on its own and rows are identified by another ID.
    public var localKey: String? {
        guard let integerKey, !identityColumns.contains(where: { $0.name == integerKey }) else { return nil }
        return integerKey
    }

    /// The columns that are synced to other nodes.
    package var sharedColumns: [EntityColumn] {
        columns.contains(where: \.isLocal) ? columns.filter { !$0.isLocal } : columns
    }

    /// The columns that form the stable ID. Empty if Martlet assigns it.
    public var identityColumns: [EntityColumn] {
        guard case .columns(let names) = identity else { return [] }
        if let identitySlots { return identitySlots.compactMap { slot in columns.first { $0.slot == slot } } }
        return names.compactMap { name in columns.first { $0.name == name } }
    }

    /// Returns the columns that form one register with this one, including itself.
    package func register(of column: EntityColumn) -> [EntityColumn] {
        guard let register = registers.first(where: { $0.contains(column.slot) }) else { return [column] }
        return columns.filter { register.contains($0.slot) }
    }

    /// Whether the table has all parts of its identity. False in the middle of a schema change.
    var hasIdentity: Bool {
        switch identity {
        case .hidden: integerKey != nil
        case .columns(let names): names.count == identityColumns.count
        }
    }

    /// Whether clocks are stored by integer key. Otherwise they are stored by stable ID.
    ///
    /// SQLite may renumber the rows of a table without an integer primary key (`VACUUM`).
    package var isKeyedByInteger: Bool { integerKey != nil }

    /// Whether a row keeps the ID that it was inserted with, whatever happens to its columns and to the identity rule.
    package var recordsNames: Bool { keepsNames || identity == .hidden }

    /// Returns the entity with the rules of identity and capture that applied to this change.
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

    /// Returns the column with this name, or with this name before it was renamed.
    public func column(named name: String) -> EntityColumn? {
        columns.first { $0.name == name } ?? columns.first { $0.formerNames.contains(name) }
    }
}

/// A table that is no longer tracked.
public struct LostEntity: Sendable, Equatable {
    /// The table's name when it was last seen.
    public var name: String
    public var reason: String
}

/// A captured column. Never changes: each change of a row that is read or written refers to its columns.
public final class EntityColumn: Sendable {
    public let name: String
    public let formerNames: [String]
    /// The number of the log column (`c1`, `c2`, ...) that holds the values. Never reused for another column.
    package let slot: Int
    public let declaredType: String
    package let affinity: Affinity
    public let isNotNull: Bool
    /// The SQL of the value that REPLACE puts in place of NULL, if that is known before it does: the default of a
    /// column that is NOT NULL.
    let nullReplacement: String?
    /// The entity whose local integer key this column holds, as a foreign key.
    public let reference: String?
    /// The ID of the first change that holds values of the column.
    package let since: Int64
    /// True for an identity column of a table that was attached before text counted as the number of a row: its rows
    /// keep their IDs.
    package let keepsTextAsItIs: Bool
    /// True if the column was a reference before, and is none now. Integers that it has from then are row numbers,
    /// which differ from node to node.
    package let wasReference: Bool
    /// True for a dropped column. Its values are used only for identities.
    package let isDropped: Bool
    /// True for a column whose values stay on this node. Only set in the catalogs of the sync engine.
    package let isLocal: Bool

    /// - Parameter isStrict: Whether the table is STRICT.
    init(
        name: String, formerNames: [String], slot: Int, declaredType: String, isStrict: Bool = false, isNotNull: Bool,
        nullReplacement: String? = nil, since: Int64, wasReference: Bool = false, isDropped: Bool = false
    ) {
        self.name = name
        self.formerNames = formerNames
        self.slot = slot
        self.declaredType = declaredType
        affinity = Affinity(declaredType: declaredType, isStrict: isStrict)
        self.isNotNull = isNotNull
        self.nullReplacement = nullReplacement
        reference = nil
        self.since = since
        keepsTextAsItIs = false
        self.wasReference = wasReference
        self.isDropped = isDropped
        isLocal = false
    }

    private init(_ column: EntityColumn, reference: String?, keepsTextAsItIs: Bool, isLocal: Bool) {
        name = column.name
        formerNames = column.formerNames
        slot = column.slot
        declaredType = column.declaredType
        affinity = column.affinity
        isNotNull = column.isNotNull
        nullReplacement = column.nullReplacement
        self.reference = reference
        since = column.since
        self.keepsTextAsItIs = keepsTextAsItIs
        wasReference = column.wasReference && reference == nil
        isDropped = column.isDropped
        self.isLocal = isLocal
    }

    /// Returns the column as one that holds local integer keys of this entity.
    func referring(to entity: String, keepsTextAsItIs: Bool) -> EntityColumn {
        EntityColumn(self, reference: entity, keepsTextAsItIs: keepsTextAsItIs, isLocal: isLocal)
    }

    /// Returns the column as one whose values stay on this node.
    func local() -> EntityColumn {
        EntityColumn(self, reference: reference, keepsTextAsItIs: keepsTextAsItIs, isLocal: true)
    }
}

extension EntityColumn: Equatable {
    public static func == (a: EntityColumn, b: EntityColumn) -> Bool {
        a === b
            || a.name == b.name && a.formerNames == b.formerNames && a.slot == b.slot
                && a.declaredType == b.declaredType && a.affinity == b.affinity && a.isNotNull == b.isNotNull
                && a.nullReplacement == b.nullReplacement && a.reference == b.reference && a.since == b.since
                && a.keepsTextAsItIs == b.keepsTextAsItIs && a.wasReference == b.wasReference
                && a.isDropped == b.isDropped && a.isLocal == b.isLocal
    }
}

/// The rules that applied to a table's rows before it was changed. They apply to changes made at that time.
struct FormerRule: Sendable, Equatable, Codable {
    /// The ID of the first change to which the rule does not apply.
    var until: Int64
    /// The slots of the columns that formed the stable ID. Nil if Martlet assigned it.
    var slots: [Int]?
    var keepsOldValues: Bool
}

/// The rule that identifies a row on every node.
///
/// It applies to new rows: a row keeps the ID that it was inserted with.
public enum IdentityRule: Sendable, Equatable, Codable {
    /// By a UUID that Martlet assigns.
    case hidden
    /// By the values of these columns, in this order.
    case columns([String])
}

/// The rule for which of two rows keeps a unique key that both claim.
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
    /// The expressions of the index, as SQL, by their positions among its terms.
    package var expressions: [Int: String] = [:]
    /// The columns that an expression names, including generated ones, with their names in the table.
    package var expressionColumns: [String] = []
    /// Whether the index contains an expression.
    package var hasExpression: Bool { !expressions.isEmpty }
    /// The settable columns from which the key is computed, including those behind expressions and generated columns,
    /// in lower case.
    package var sources: Set<String>
}

/// A foreign key.
public struct ForeignKey: Sendable, Equatable {
    public var columns: [String]
    /// The table that the foreign key refers to.
    public var target: String
    public var targetColumns: [String]
    /// Whether the foreign key has an action for a change of the target's key.
    var followsUpdates = false
    /// Whether rows are deleted with their target.
    var followsDeletes = false
}
