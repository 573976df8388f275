import GRDB

/// The stable IDs that rows with recorded IDs had at each change since the last stamping. It computes in advance what
/// the sync engine will store when it stamps the changes.
///
/// Reads the part of the log that isn't stamped yet on the first request. Confined to its connection.
final class UnstampedRows {
    enum Name {
        /// The ID that a row inserted since then will get.
        case assigned(StableID)
        /// The ID stored for this integer key.
        case stamped(Int64)
    }

    private let db: Database
    private let entities: [Entity]
    private let resolver: IdentityResolver
    private let end: Int64
    /// The ID of the row under a key from each change on. Nil means that there is no row under the key.
    private var names: [RowKey: [(from: Int64, name: Name?)]]?

    init(_ db: Database, _ catalog: Catalog, through end: Int64) {
        self.db = db
        self.end = end
        entities = catalog.entities.filter(\.recordsNames)
        resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
    }

    /// Returns the ID of the row at this change. Nil if nothing has happened to it since the last stamping, or if there
    /// was no row.
    func name(_ entity: Int64, _ row: Int64, at change: Int64) throws -> Name? {
        if names == nil { names = try read() }
        return names?[RowKey(entity: entity, row: row)]?.last { $0.from <= change }?.name
    }

    private func read() throws -> [RowKey: [(from: Int64, name: Name?)]] {
        var names: [RowKey: [(from: Int64, name: Name?)]] = [:]
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        guard !entities.isEmpty, end > stamped else { return names }
        guard entities.allSatisfy({ $0.formerRules.isEmpty && $0.identity == .hidden }) else {
            return try readMixed(from: stamped)
        }
        let assigning = try HiddenIDRule.load(db)
        let known = StatementCache()
        func current(_ key: RowKey) throws -> Name? {
            if let last = names[key]?.last { return last.name }
            let find = try known(db, "SELECT 1 FROM \(InternalName.side(key.entity)) WHERE row = ?1")
            find.bind(1, key.row)
            return try find.first { _ in Name.stamped(key.row) }
        }
        let read = try PreparedStatement(
            db,
            """
            SELECT id, e, r, k, t FROM \(InternalName.log) WHERE id > ?1 AND id <= ?2
            AND e IN (\(entities.map { String($0.id) }.joined(separator: ", "))) ORDER BY id
            """)
        read.bind(1, stamped)
        read.bind(2, end)
        var before: RowKey?
        while try read.step() {
            let id = read.integer(0)
            let key = RowKey(entity: read.integer(1), row: read.integer(2))
            switch read.integer(3) {
            case ChangeKind.insert.code:
                // A row that replaced an existing one (REPLACE on its own key) keeps its ID.
                guard try current(key) == nil else { break }
                let assigned = assigning.inserted(change: id, time: read.integer(4))
                names[key, default: []].append((id, .assigned(assigned)))
            case ChangeKind.delete.code:
                names[key, default: []].append((id + 1, nil))
            case ChangeKind.Mark.before:
                before = key
                continue
            default:
                guard let old = before, old != key else { break }
                let name = try current(old)
                names[old, default: []].append((id, nil))
                names[key, default: []].append((id, name))
            }
            before = nil
        }
        return names
    }

    /// Does the same if columns identify some rows, or did before.
    private func readMixed(from stamped: Int64) throws -> [RowKey: [(from: Int64, name: Name?)]] {
        var names: [RowKey: [(from: Int64, name: Name?)]] = [:]
        let assigning = try HiddenIDRule.load(db)
        let ids = Set(entities.map(\.id))
        func current(_ key: RowKey, _ entity: Entity) throws -> (name: Name, identity: StableID)? {
            switch names[key]?.last {
            case (_, .assigned(let identity))?: return (.assigned(identity), identity)
            case (_, .stamped(let row))?:
                return try resolver.keptIdentity(db, entity, row: row).map { (.stamped(row), $0) }
            case (_, nil)?: return nil
            case nil: return try resolver.keptIdentity(db, entity, row: key.row).map { (.stamped(key.row), $0) }
            }
        }
        func declared(_ entity: Entity, _ values: [(column: EntityColumn, value: Value)]) throws -> StableID? {
            let found = entity.identityColumns.compactMap { c in values.first { $0.column.slot == c.slot }?.value }
            guard !found.isEmpty, found.count == entity.identityColumns.count else { return nil }
            return try resolver.identity(db, entity, localValues: found)
        }
        try LogReader(db, catalog: resolver.catalog).forEach(from: stamped + 1, to: end + 1) { change in
            let entity = change.entity
            guard ids.contains(entity.id), let row = change.row else { return }
            let key = RowKey(entity: entity.id, row: row)
            switch change.kind {
            case .insert:
                guard try current(key, entity) == nil else { return }
                let assigned = assigning.inserted(change: change.id, time: change.time)
                names[key, default: []].append(
                    (change.id, .assigned(try declared(entity, change.values) ?? assigned)))
            case .delete: names[key, default: []].append((change.id + 1, nil))
            case .update:
                guard let before = change.before else { return }
                let old = RowKey(entity: entity.id, row: before.row ?? row)
                let name = try current(old, entity)
                if old != key {
                    names[old, default: []].append((change.id, nil))
                    names[key, default: []].append((change.id, name?.name))
                }
                // A row that is identified by its columns gets a new ID when they change.
                guard let name, let was = try declared(entity, before.values), was == name.identity,
                    let became = try declared(entity, change.values), became != was
                else { return }
                names[key, default: []].append((change.id, .assigned(became)))
            }
        }
        return names
    }
}
