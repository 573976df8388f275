import GRDB

/// Finds, by their values, the rows of a table that changed while it had no triggers, and logs what changed of them.
///
/// Confined to its connection, in the caller's transaction.
struct RebuiltTable {
    private let db: Database
    private let entity: Entity
    private let resolver: IdentityResolver
    private let prints: PrintTable
    /// What a row has in a column that was added after it came, unless the log says otherwise.
    private let initial: [Int: UInt64]
    private let highestSlot: Int

    init(_ db: Database, _ entity: Entity, _ resolver: IdentityResolver) throws {
        self.db = db
        self.entity = entity
        self.resolver = resolver
        prints = try PrintTable(db)
        var initial: [Int: UInt64] = [:]
        for column in entity.columns { initial[column.slot] = try RowPrints.initial(db, entity.id, slot: column.slot) }
        self.initial = initial
        highestSlot = entity.columns.map(\.slot).max() ?? 0
    }

    /// Nobody changed anything else of these rows, so that only the columns that differ count as changed, and those of
    /// their registers.
    ///
    /// Rows that have taken over the names of each other are logged as deleted, and are to be logged as inserted once
    /// all of the names are free.
    ///
    /// - Returns: how many rows had changed, and the integer keys of those that are to be inserted.
    func logChanged() throws -> (count: Int, renumbered: [Int64]) {
        let statements = StatementCache()
        let former = entity.isKeyedByInteger ? FormerIdentities(db, entity, resolver) : nil
        let renumbered = try former.map(renumbered) ?? [:]
        for (row, name) in renumbered.sorted(by: { $0.key < $1.key }) {
            try insert(ChangeKind.delete.code, row, nil, Array(zip(entity.identityColumns, name)), statements)
        }
        var count = 0
        try RowPrints.forEachRow(db, entity) { row, key, values in
            guard let known = try prints.row(entity.id, key) else { return }
            let differing = values.filter { differs($0.value, $0.column, known) }.map(\.column)
            try note(key, known, values, except: differing)
            guard !differing.isEmpty else { return }
            count += 1
            if let row, renumbered[row] != nil { return }
            try log(row, values, differing, former, statements)
        }
        return (count, renumbered.keys.sorted())
    }

    /// The rows whose name another row had that has a new one too, with what they were called before.
    private func renumbered(_ former: FormerIdentities) throws -> [Int64: [Value]] {
        let slots = entity.identityColumns.map(\.slot)
        guard !slots.isEmpty else { return [:] }
        var renamed: [(row: Int64, old: [Value], new: StableID)] = []
        try RowPrints.forEachRow(db, entity) { row, key, values in
            guard let row, let known = try prints.row(entity.id, key) else { return }
            let changed = values.filter { differs($0.value, $0.column, known) }.flatMap {
                entity.register(of: $0.column)
            }
            guard changed.contains(where: { slots.contains($0.slot) }) else { return }
            let new = slots.map { slot in values.first { $0.column.slot == slot }?.value ?? .null }
            let old = try former.values(row)
            if !old.contains(.null), old != new { renamed.append((row, old, StableID(values: new))) }
        }
        let names = Set(renamed.map { StableID(values: $0.old) })
        return Dictionary(
            uniqueKeysWithValues: renamed.filter { names.contains($0.new) }.map { ($0.row, $0.old) })
    }

    /// How far rows hold what is known of them.
    struct Agreement {
        /// True where there are rows, and they are those that are known.
        var isWhole = false
        /// How many values are other ones.
        var differing = 0
        /// How many values are the same, and would not be so by themselves: neither NULL nor the default.
        var telling = 0
    }

    /// - Parameters:
    ///   - slot: the column to look at. Nil: all but those that name rows.
    ///   - defaultSQL: what makes the column's default.
    func agreement(slot: Int?, unless defaultSQL: String?) throws -> Agreement {
        let initial = try defaultSQL.flatMap { sql in
            try PreparedStatement(db, "SELECT \(sql)").first { ValuePrint.of($0.value(0)) }
        }
        let identity = entity.identityColumns.map(\.slot)
        var agreement = Agreement()
        var (known, unknown) = (Int64(0), 0)
        try RowPrints.forEachRow(db, entity) { _, key, values in
            guard let row = try prints.row(entity.id, key) else { return unknown += 1 }
            known += 1
            for (column, value) in values where slot.map({ $0 == column.slot }) ?? !identity.contains(column.slot) {
                if differs(value, column, row) {
                    agreement.differing += 1
                } else if value != .null, ValuePrint.of(value) != initial {
                    agreement.telling += 1
                }
            }
        }
        let printed = try Int64.fetchOne(
            db, sql: "SELECT count(*) FROM \(InternalName.prints) WHERE entity = ?", arguments: [entity.id])
        agreement.isWhole = known > 0 && unknown == 0 && known == printed
        return agreement
    }

    /// Values that a column's new type made into others are what the row should hold from now on.
    private func note(
        _ key: PrintKey, _ known: RowPrint, _ values: [(column: EntityColumn, value: Value)],
        except differing: [EntityColumn]
    ) throws {
        var row = known
        for (column, value) in values where known[column.slot] != ValuePrint.unknown && !differing.contains(column) {
            row[column.slot] = ValuePrint.of(value)
        }
        if row != known { try prints.set(entity.id, key, row) }
    }

    private func differs(_ value: Value, _ column: EntityColumn, _ known: RowPrint) -> Bool {
        var print = known[column.slot]
        if print == ValuePrint.unknown { print = initial[column.slot] ?? print }
        if print == ValuePrint.unknown || print == ValuePrint.of(value) { return false }
        return !ValuePrint.mayStandFor(print, in: column, value)
    }

    private func log(
        _ row: Int64?, _ values: [(column: EntityColumn, value: Value)], _ differing: [EntityColumn],
        _ former: FormerIdentities?, _ statements: StatementCache
    ) throws {
        let changed = Set(differing.flatMap { entity.register(of: $0).map(\.slot) })
        let identity = Set(entity.identityColumns.map(\.slot))
        let isRenamed = !changed.isDisjoint(with: identity)
        if isRenamed, let row, let former {
            let old = zip(entity.identityColumns, try former.values(row)).map { (column: $0, value: $1) }
            try insert(ChangeKind.Mark.before, row, nil, old, statements)
        }
        // As the triggers do: under another name the row is a new one elsewhere, which needs all of its columns.
        let logged = isRenamed ? values : values.filter { changed.union(identity).contains($0.column.slot) }
        let mask = ChangeMask.value(slots: changed.sorted(), highest: highestSlot)
        try insert(ChangeKind.update.code, row, mask, logged, statements)
    }

    private func insert(
        _ kind: Int64, _ row: Int64?, _ mask: Value?, _ values: [(column: EntityColumn, value: Value)],
        _ statements: StatementCache
    ) throws {
        let insert = try statements(
            db,
            """
            INSERT INTO \(InternalName.log)(e, r, k, m, t\(values.map { ", c\($0.column.slot)" }.joined()))
            VALUES (\(entity.id), ?1, \(kind), ?2, \(CaptureTriggers.now)\(values.indices.map { ", ?\($0 + 3)" }.joined()))
            """)
        insert.bind(1, optional: row)
        insert.bind(2, mask ?? .null)
        for (index, value) in values.enumerated() { insert.bind(Int32(index + 3), value.value) }
        try insert.run()
    }
}

/// What the identity columns of rows with an integer key held, as the log has it, or what is kept of their names.
/// Confined to its connection.
private final class FormerIdentities {
    private let db: Database
    private let entity: Entity
    private let resolver: IdentityResolver
    /// The newest unregistered row of the log that has the identity columns, by integer key.
    private var images: [Int64: Int64]?

    init(_ db: Database, _ entity: Entity, _ resolver: IdentityResolver) {
        self.db = db
        self.entity = entity
        self.resolver = resolver
    }

    private func readImages() throws -> [Int64: Int64] {
        var images: [Int64: Int64] = [:]
        let read = try PreparedStatement(
            db,
            """
            SELECT r, id FROM \(InternalName.log) WHERE id > ?1 AND e = \(entity.id) AND r IS NOT NULL
            AND k IN (\(ChangeKind.insert.code), \(ChangeKind.update.code)) ORDER BY id
            """)
        read.bind(1, try Meta.integer(db, MetaKey.registered) ?? 0)
        while try read.step() { images[read.integer(0)] = read.integer(1) }
        return images
    }

    /// NULL where no name is known: then the row gets its first one.
    func values(_ row: Int64) throws -> [Value] {
        let columns = entity.identityColumns
        let images = try images ?? readImages()
        self.images = images
        if let image = images[row] {
            let read = try PreparedStatement(
                db,
                "SELECT \(columns.map { "c\($0.slot)" }.joined(separator: ", ")) FROM \(InternalName.log) WHERE id = ?1"
            )
            read.bind(1, image)
            if let values = try read.first({ found in columns.indices.map { found.value(Int32($0)) } }) {
                return values
            }
        }
        let kept = try resolver.keptIdentity(db, entity, row: row)
        return try kept.flatMap { try resolver.formerValues(db, entity, $0) } ?? columns.map { _ in .null }
    }
}
