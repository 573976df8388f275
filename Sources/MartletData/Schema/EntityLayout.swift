import MartletStore

/// The location of a model's properties: the slot in its backing, and the column.
final class EntityLayout {
    enum SlotKind {
        case attribute(Schema.Attribute, Schema.AttributeType)
        case relationship(Link)
    }

    struct Slot {
        var name: String
        /// Nil for the hidden end of a one-sided relationship.
        var keyPath: AnyKeyPath?
        var kind: SlotKind
        /// The index of the value's column in the table. Nil if the value is stored elsewhere.
        var column: Int?

        var link: Link? { if case .relationship(let link) = kind { link } else { nil } }

        func isNotANumber(_ value: Value) -> Bool {
            switch value {
            case .real(let number): return number.isNaN
            case .text("NaN"):
                if case .attribute(_, let type) = kind { return type.isDecimal }
                return false
            default: return false
            }
        }
    }

    let name: String
    let type: any PersistentModel.Type
    let table: TableLayout
    let superlayout: EntityLayout?
    /// The index of the container's store that contains the entity.
    let unit: Int
    var sublayouts: [EntityLayout] = []
    var slots: [Slot] = []
    private var slotsByName: [String: Int] = [:]
    private var slotsByKeyPath: [AnyKeyPath: Int] = [:]
    /// The slots that have a column, with its index.
    private(set) var columnSlots: [(slot: Int, column: Int)] = []
    /// Readers for a row of ``TableLayout/selection``.
    private(set) var readers: [Reader] = []

    struct Reader {
        let slot: Int
        /// The column's index in the selection.
        let column: Int32
        /// Nil if any value is accepted.
        let accepts: (@Sendable (Value) -> Bool)?
    }
    /// The values with which a fetched model starts: the defaults of attributes that aren't stored.
    private(set) var initialValues: [Value] = []
    /// The attributes that are in memory only.
    private(set) var ephemeralSlots: [Int] = []

    init(name: String, type: any PersistentModel.Type, table: TableLayout, superlayout: EntityLayout?, unit: Int) {
        self.name = name
        self.type = type
        self.table = table
        self.superlayout = superlayout
        self.unit = unit
    }

    func finish() {
        slotsByName = Dictionary(
            slots.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        slotsByKeyPath = Dictionary(
            slots.enumerated().compactMap { index, slot in slot.keyPath.map { ($0, index) } },
            uniquingKeysWith: { first, _ in first })
        ephemeralSlots = slots.indices.filter {
            if case .attribute(let attribute, _) = slots[$0].kind { attribute.isEphemeral } else { false }
        }
        initialValues = slots.map { slot in
            guard case .attribute(let attribute, let type) = slot.kind, attribute.isEphemeral else { return .null }
            return type.defaultValue?() ?? .null
        }
        toManySlots = slots.indices.filter { slots[$0].link?.isToMany == true }
        hasLimitedOwners = slots.contains { $0.link?.inverse?.isLimited == true }
        columnSlots = slots.enumerated().compactMap { index, slot in slot.column.map { (index, $0) } }
        readers = columnSlots.map { slot, column in
            var accepts: (@Sendable (Value) -> Bool)?
            if case .attribute(_, let type) = slots[slot].kind { accepts = type.accepts }
            return Reader(slot: slot, column: Int32(column + 2), accepts: accepts)
        }
    }

    private(set) var toManySlots: [Int] = []

    /// True if this model refers to a model that may have a limited number of such models.
    private(set) var hasLimitedOwners = false

    func slot(named name: String) -> Int? { slotsByName[name] }
    func slot(_ keyPath: AnyKeyPath) -> Int? { slotsByKeyPath[keyPath] }

    func slot(ofColumn name: String) -> Int? {
        columnSlots.first { table.columns[$0.column].name == name }?.slot
    }

    /// The top of the hierarchy.
    var root: EntityLayout { superlayout?.root ?? self }

    /// This entity and all entities below it.
    var family: [EntityLayout] { [self] + sublayouts.flatMap(\.family) }

    func isKind(of other: EntityLayout) -> Bool {
        self === other || (superlayout?.isKind(of: other) ?? false)
    }
}

/// One end of a relationship.
final class Link {
    enum Storage {
        /// A column of this table contains the other row.
        case column
        /// A column of the other table contains this row.
        case inverse
        /// A join table.
        case join(table: String, own: String, other: String)
        /// The model itself stores the others' rows: in custom stores, which have no tables.
        case list
    }

    let name: String
    let isToMany: Bool
    let isOptional: Bool
    let options: Schema.Relationship
    /// The entity that declares the relationship; `destination` is its target.
    unowned let source: EntityLayout
    unowned let destination: EntityLayout
    weak var inverse: Link?
    var storage = Storage.column

    /// True if there is a minimum or maximum number of models.
    var isLimited: Bool { options.minimumModelCount > 0 || options.maximumModelCount > 0 }

    /// True if setting this end writes rows of a join table, or a list, instead of a model's column.
    var hasRowsOfItsOwn: Bool {
        switch storage {
        case .join, .list: true
        case .column, .inverse: false
        }
    }

    init(
        name: String, isToMany: Bool, isOptional: Bool, options: Schema.Relationship, source: EntityLayout,
        destination: EntityLayout
    ) {
        self.name = name
        self.isToMany = isToMany
        self.isOptional = isOptional
        self.options = options
        self.source = source
        self.destination = destination
    }
}

/// The table of a hierarchy of models.
final class TableLayout {
    struct Column {
        var name: String
        var declaration: String
        var originalName: String?
        /// The value for rows that existed before the column.
        var defaultValue: Value?
        var isNotNull = false
        /// The table that the column references.
        var reference: String?
        /// The property, and the model that declares it.
        var property = ""
        var owner = ""
        /// The Swift type, without its optionality. Only recorded because changing it may make values unreadable.
        var valueType = ""
        /// Returns whether the attribute's type can represent a value. Nil for references.
        var accepts: (@Sendable (Value) -> Bool)?
    }

    let name: String
    var columns: [Column] = []
    var uniqueKeys: [[String]] = []
    var indexes: [[String]] = []
    /// The columns of the row identity. Empty if Martlet assigns stable IDs.
    var identity: [String] = []
    var preservesValues = false
    /// True if a column contains the row's class in a hierarchy.
    var hasTypeColumn = false

    init(name: String) { self.name = name }

    static let key = "_id"
    static let type = "_type"
}
