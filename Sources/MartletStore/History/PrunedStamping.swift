import GRDB

/// Stamps rows whose changes are deleted from the history before they were stamped. Each row keeps its ID, with a clock
/// that is older than every change, as if its table had been attached now.
enum PrunedStamping {
    static func run(_ db: Database, through end: Int64) throws {
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        guard end > stamped else { return }
        try RecentClocks.flush(db)
        let ids = try HiddenIDRule.load(db)
        let catalog = try Catalog.load(db)
        let statements = StatementCache()
        let resolver = IdentityResolver(catalog: catalog, statements: statements)

        func identity(_ entity: Entity, _ values: [(column: EntityColumn, value: Value)]) throws -> StableID? {
            let found = entity.identityColumns.compactMap { c in values.first { $0.column.slot == c.slot }?.value }
            guard found.count == entity.identityColumns.count, !found.isEmpty else { return nil }
            return try resolver.identity(db, entity, localValues: found)
        }
        /// Entities that got a row whose columns don't identify it.
        var begun = Set<Int64>()
        func records(_ entity: Entity) -> Bool { entity.recordsNames || begun.contains(entity.id) }
        func begin(_ entity: Entity) throws {
            guard !records(entity) else { return }
            begun.insert(entity.id)
            try RecordedNames.begin(db, entity, under: entity.identity)
        }
        func remove(_ entity: Entity, row: Int64?, _ identity: StableID?) throws {
            let column = entity.isKeyedByInteger ? "row" : "ident"
            let delete = try statements(db, "DELETE FROM \(InternalName.side(entity.id)) WHERE \(column) = ?1")
            if entity.isKeyedByInteger {
                delete.bind(1, optional: row)
            } else {
                delete.bind(1, blob: identity?.bytes ?? [])
            }
            try delete.run()
        }
        func add(_ entity: Entity, row: Int64?, _ identity: StableID?) throws {
            let target = entity.isKeyedByInteger ? "row, ident" : "ident"
            let values = entity.isKeyedByInteger ? "?1, ?2" : "?2"
            let clash =
                entity.isKeyedByInteger && !records(entity)
                ? "ON CONFLICT(row) DO UPDATE SET ident = excluded.ident" : "ON CONFLICT DO NOTHING"
            if !entity.isKeyedByInteger, identity == nil { return }
            let insert = try statements(
                db,
                "INSERT INTO \(InternalName.side(entity.id))(\(target), hlc, node) VALUES (\(values), 0, 0) \(clash)")
            if entity.isKeyedByInteger { insert.bind(1, optional: row) }
            if let identity { insert.bind(2, blob: identity.bytes) } else { insert.bindNull(2) }
            try insert.run()
        }

        func isTaken(_ entity: Entity, _ name: StableID) throws -> Bool {
            let find = try statements(db, "SELECT 1 FROM \(InternalName.side(entity.id)) WHERE ident = ?1")
            find.bind(1, blob: name.bytes)
            return try find.first { _ in true } ?? false
        }
        /// If the identity columns change, the row's recorded identity follows them. A row that keeps another recorded
        /// identity keeps it.
        func follow(_ change: LogChange, _ before: [(column: EntityColumn, value: Value)]) throws {
            guard let row = change.row, let was = try identity(change.entity, before),
                let became = try identity(change.entity, change.values), was != became,
                try resolver.keptIdentity(db, change.entity, row: row) == was, try !isTaken(change.entity, became)
            else { return }
            let save = try statements(
                db, "UPDATE \(InternalName.side(change.entity.id)) SET ident = ?2 WHERE row = ?1")
            save.bind(1, row)
            save.bind(2, blob: became.bytes)
            try save.run()
        }

        try LogReader(db, catalog: catalog).forEach(from: stamped + 1, to: end + 1) { change in
            let entity = change.entity
            let isHidden = entity.identity == .hidden
            switch change.kind {
            case .insert:
                let assigned = ids.inserted(change: change.id, time: change.time)
                var name = isHidden ? assigned : try identity(entity, change.values)
                // The identity may be missing, or another row may have kept it.
                if !isHidden, entity.localKey != nil {
                    if name == nil { try begin(entity) }
                    if records(entity), try name.map({ try isTaken(entity, $0) }) ?? true { name = assigned }
                }
                try add(entity, row: change.row, name)
            case .update:
                guard let before = change.before else { return }
                if let old = before.row, let new = change.row, old != new {
                    let move = try statements(
                        db, "UPDATE OR REPLACE \(InternalName.side(entity.id)) SET row = ?2 WHERE row = ?1")
                    move.bind(1, old)
                    move.bind(2, new)
                    try move.run()
                }
                guard !isHidden else { return }
                if records(entity) { return try follow(change, before.values) }
                if !entity.isKeyedByInteger { try remove(entity, row: nil, try identity(entity, before.values)) }
                try add(entity, row: change.row, try identity(entity, change.values))
            case .delete:
                try remove(entity, row: change.row, isHidden ? nil : try identity(entity, change.values))
            }
        }
        try Meta.set(db, MetaKey.stamped, end)
    }
}
