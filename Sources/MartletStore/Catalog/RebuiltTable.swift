import GRDB

/// Finds the rows of a table that changed while it had no triggers, by comparing value hashes, and logs their changes.
///
/// Confined to its connection, in the caller's transaction.
struct RebuiltTable {
    private let db: Database
    private let entity: Entity
    private let resolver: IdentityResolver
    private let hashes: RowHashTable
    /// The hash of a row's value in a column that was added later, unless the log has another value.
    private let initial: [Int: UInt64]
    private let highestSlot: Int

    init(_ db: Database, _ entity: Entity, _ resolver: IdentityResolver) throws {
        self.db = db
        self.entity = entity
        self.resolver = resolver
        hashes = try RowHashTable(db)
        var initial: [Int: UInt64] = [:]
        for column in entity.columns { initial[column.slot] = try RowHashes.initial(db, entity.id, slot: column.slot) }
        self.initial = initial
        highestSlot = entity.columns.map(\.slot).max() ?? 0
    }

    /// Logs the rows that changed. Only the columns that differ count as changed, together with those of their
    /// registers, because nothing else in these rows has changed.
    ///
    /// Rows that have swapped identities are logged as deleted. The caller logs them as inserted once all of the
    /// identities are free.
    ///
    /// - Parameter appeared: Rows that the caller logs as inserted. They may have hashes: of their values in a column
    ///   that was added just now.
    /// - Returns: The number of changed rows, and the integer keys of those to log as inserted.
    func logChanged(except appeared: Set<HashKey>) throws -> (count: Int, renumbered: [Int64]) {
        let statements = StatementCache()
        let former = entity.isKeyedByInteger ? FormerIdentities(db, entity, resolver) : nil
        let renumbered = try former.map { try self.renumbered($0, except: appeared) } ?? [:]
        for (row, name) in renumbered.sorted(by: { $0.key < $1.key }) {
            try insert(ChangeKind.delete.code, row, nil, Array(zip(entity.identityColumns, name)), statements)
        }
        var count = 0
        try RowHashes.forEachRow(db, entity) { row, key, values in
            guard !appeared.contains(key), let known = try hashes.row(entity.id, key) else { return }
            let differing = values.filter { differs($0.value, $0.column, known) }.map(\.column)
            try note(key, known, values, except: differing)
            guard !differing.isEmpty else { return }
            count += 1
            if let row, renumbered[row] != nil { return }
            try log(row, values, differing, former, statements)
        }
        return (count, renumbered.keys.sorted())
    }

    /// Returns the rows whose new identity belonged to another row with a new identity, with their former values.
    private func renumbered(
        _ former: FormerIdentities, except appeared: Set<HashKey>
    ) throws -> [Int64: [Value]] {
        let slots = entity.identityColumns.map(\.slot)
        guard !slots.isEmpty else { return [:] }
        var renamed: [(row: Int64, old: [Value], new: StableID)] = []
        try RowHashes.forEachRow(db, entity) { row, key, values in
            guard let row, !appeared.contains(key), let known = try hashes.row(entity.id, key) else { return }
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

    /// The degree to which rows match their stored hashes.
    struct Agreement {
        /// Whether there are rows, and they are exactly the known ones.
        var isWhole = false
        /// The number of values that differ.
        var differing = 0
        /// The number of equal values that are not equal just by chance: neither NULL nor the default.
        var telling = 0
    }

    /// - Parameters:
    ///   - slot: The column to look at. Nil means all columns but the identity.
    ///   - defaultSQL: The SQL of the column's default.
    func agreement(slot: Int?, unless defaultSQL: String?) throws -> Agreement {
        let initial = try defaultSQL.flatMap { sql in
            try PreparedStatement(db, "SELECT \(sql)").first { ValueHash.of($0.value(0)) }
        }
        let identity = entity.identityColumns.map(\.slot)
        var agreement = Agreement()
        var (known, unknown) = (Int64(0), 0)
        try RowHashes.forEachRow(db, entity) { _, key, values in
            guard let row = try hashes.row(entity.id, key) else { return unknown += 1 }
            known += 1
            for (column, value) in values where slot.map({ $0 == column.slot }) ?? !identity.contains(column.slot) {
                if differs(value, column, row) {
                    agreement.differing += 1
                } else if value != .null, ValueHash.of(value) != initial {
                    agreement.telling += 1
                }
            }
        }
        let printed = try Int64.fetchOne(
            db, sql: "SELECT count(*) FROM \(InternalName.prints) WHERE entity = ?", arguments: [entity.id])
        agreement.isWhole = known > 0 && unknown == 0 && known == printed
        return agreement
    }

    /// Stores the hashes of values that a column's new type has converted: from now on the row should hold these.
    private func note(
        _ key: HashKey, _ known: RowHash, _ values: [(column: EntityColumn, value: Value)],
        except differing: [EntityColumn]
    ) throws {
        var row = known
        for (column, value) in values where known[column.slot] != ValueHash.unknown && !differing.contains(column) {
            row[column.slot] = ValueHash.of(value)
        }
        if row != known { try hashes.set(entity.id, key, row) }
    }

    private func differs(_ value: Value, _ column: EntityColumn, _ known: RowHash) -> Bool {
        var hash = known[column.slot]
        if hash == ValueHash.unknown { hash = initial[column.slot] ?? hash }
        if hash == ValueHash.unknown || hash == ValueHash.of(value) { return false }
        return !ValueHash.mayStandFor(hash, in: column, value)
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
        // Do as the triggers do: with another identity the row is a new one on other nodes, which needs all of its
        // columns.
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
            VALUES (\(entity.id), ?1, \(kind), ?2, \
            \(CaptureTriggers.now)\(values.indices.map { ", ?\($0 + 3)" }.joined()))
            """)
        insert.bind(1, optional: row)
        insert.bind(2, mask ?? .null)
        for (index, value) in values.enumerated() { insert.bind(Int32(index + 3), value.value) }
        try insert.run()
    }
}

/// The former values of the identity columns of rows with an integer key, from the log or from their stored IDs.
/// Confined to its connection.
private final class FormerIdentities {
    private let db: Database
    private let entity: Entity
    private let resolver: IdentityResolver
    /// The newest row of the log that isn't stamped yet and has the identity columns, by integer key.
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
        read.bind(1, try Meta.integer(db, MetaKey.stamped) ?? 0)
        while try read.step() { images[read.integer(0)] = read.integer(1) }
        return images
    }

    /// Returns the former values. NULL if no identity is known: then the row gets its first one.
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
