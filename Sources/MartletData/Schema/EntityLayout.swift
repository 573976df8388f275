import MartletStore

/// Where a model's properties are kept: in which slot of its backing, and in which column.
final class EntityLayout {
    enum SlotKind {
        case attribute(Schema.Attribute, Schema.AttributeType)
        case relationship(Link)
    }

    struct Slot {
        var name: String
        /// Absent for the hidden end of a relationship that has one end only.
        var keyPath: AnyKeyPath?
        var kind: SlotKind
        /// Where the value is among the columns of the table. Absent where it is kept elsewhere.
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
    /// Which of the container's stores keeps it.
    let unit: Int
    var sublayouts: [EntityLayout] = []
    var slots: [Slot] = []
    private var slotsByName: [String: Int] = [:]
    private var slotsByKeyPath: [AnyKeyPath: Int] = [:]
    /// The slots that have a column, with it.
    private(set) var columnSlots: [(slot: Int, column: Int)] = []
    /// How to read a row of ``TableLayout/selection``.
    private(set) var readers: [Reader] = []

    struct Reader {
        let slot: Int
        /// Of the selection.
        let column: Int32
        /// Absent where any value will do.
        let accepts: (@Sendable (Value) -> Bool)?
    }
    /// What a model begins with that is read from the store: the defaults of what isn't kept there.
    private(set) var initialValues: [Value] = []
    /// The attributes that are kept in memory only.
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

    /// A model that this one refers to may have a limited number of such.
    private(set) var hasLimitedOwners = false

    func slot(named name: String) -> Int? { slotsByName[name] }
    func slot(_ keyPath: AnyKeyPath) -> Int? { slotsByKeyPath[keyPath] }

    func slot(ofColumn name: String) -> Int? {
        columnSlots.first { table.columns[$0.column].name == name }?.slot
    }

    /// The top of the hierarchy.
    var root: EntityLayout { superlayout?.root ?? self }

    /// This entity and everything below it.
    var family: [EntityLayout] { [self] + sublayouts.flatMap(\.family) }

    func isKind(of other: EntityLayout) -> Bool {
        self === other || (superlayout?.isKind(of: other) ?? false)
    }
}

/// One end of a relationship.
final class Link {
    enum Storage {
        /// A column of this table holds the other row.
        case column
        /// A column of the other table holds this row.
        case inverse
        /// A table of its own.
        case join(table: String, own: String, other: String)
        /// The model itself keeps the others' rows: in stores of one's own, which know no tables.
        case list
    }

    let name: String
    let isToMany: Bool
    let isOptional: Bool
    let options: Schema.Relationship
    /// The entity that declares it, and the one that it leads to.
    unowned let source: EntityLayout
    unowned let destination: EntityLayout
    weak var inverse: Link?
    var storage = Storage.column

    /// There is a least or a largest number of models.
    var isLimited: Bool { options.minimumModelCount > 0 || options.maximumModelCount > 0 }

    /// Setting this end writes rows that are no column of a model.
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
        /// What a row gets that was there before the column.
        var defaultValue: Value?
        var isNotNull = false
        /// The table that it refers to.
        var reference: String?
        /// The property, and the model that declares it.
        var property = ""
        var owner = ""
        /// The Swift type, without its optionality. Of no meaning but that a change of it may make values unreadable.
        var valueType = ""
        /// Whether the attribute's type can represent a value. Absent for references.
        var accepts: (@Sendable (Value) -> Bool)?
    }

    let name: String
    var columns: [Column] = []
    var uniqueKeys: [[String]] = []
    var indexes: [[String]] = []
    /// The columns that name a row everywhere. Empty where Martlet names it.
    var identity: [String] = []
    var preservesValues = false
    /// True where a column says which model of a hierarchy a row is.
    var hasTypeColumn = false

    init(name: String) { self.name = name }

    static let key = "_id"
    static let type = "_type"
}
