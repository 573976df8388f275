import GRDB
import MartletStore

extension ModelContext {
    /// The object of a row, from memory or from the store. Nil where the row is gone.
    func resolve(_ entity: EntityLayout, row: Int64) -> (any PersistentModel)? {
        if let known = registry.model(entity.table, row) { return known._$backing.state == .gone ? nil : known }
        return select(entity, "t0.\(TableLayout.key) = ?", row).first
    }

    /// What a relationship leads to: the store's rows, and what is changed but not saved.
    func load(_ link: Link, of backing: ModelBacking) -> [any PersistentModel] {
        guard let row = backing.row, let owner = backing.owner else { return [] }
        let destination = link.destination
        switch link.storage {
        case .column: return []
        case .join(let table, let own, let other):
            return select(
                destination,
                "t0.\(TableLayout.key) IN (SELECT \(other.quotedName) FROM \(table.quotedName) WHERE \(own.quotedName) = ?)",
                row)
        case .inverse:
            guard let inverse = link.inverse, let column = destination.column(of: inverse) else { return [] }
            func pointsHere(_ model: any PersistentModel) -> Bool {
                guard let layout = model._$backing.layout, layout.isKind(of: destination),
                    let slot = layout.slot(named: inverse.name)
                else { return false }
                return model._$backing.one(slot) === owner
            }
            var found = select(destination, "t0.\(column.quotedName) = ?", row).filter { model in
                model._$backing.originals.isEmpty || pointsHere(model)
            }
            for model in inserted.all + changed.all where pointsHere(model) && !found.contains(where: { $0 === model })
            {
                found.append(model)
            }
            return found
        }
    }

    /// Reads rows of a table. A getter can't throw: what can't be read is as if it weren't there.
    private func select(_ entity: EntityLayout, _ condition: String, _ value: Int64) -> [any PersistentModel] {
        let table = entity.table
        let type = table.hasTypeColumn ? "t0.\(TableLayout.type)" : "NULL"
        let columns = ["t0.\(TableLayout.key)", type] + table.columns.map { "t0.\($0.name.quotedName)" }
        let text = SQLText(
            "SELECT \(columns.joined(separator: ", ")) FROM \(table.name.quotedName) t0 WHERE \(condition) ORDER BY 1",
            [.integer(value)])
        let unit = container.unit(of: entity)
        let rows = try? unit.store.mapErrors {
            try unit.store.database.read { db in
                try Self.run(db, unit.statements, text) { try Self.rows($0, table) }
            }
        }
        return (rows ?? []).compactMap { fetched in
            registry.model(table, fetched.row) ?? (try? model(fetched, entity, nil))
        }
    }

    /// Reads a relationship of many models in one query for every thousand of them.
    func prefetch<T: PersistentModel>(_ keyPath: PartialKeyPath<T>, of models: [T], _ entity: EntityLayout) throws {
        guard let slot = entity.slot(keyPath), let link = entity.slots[slot].link else {
            throw SwiftDataError.unsupportedKeyPath.because("Only relationships of \(entity.name) can be prefetched.")
        }
        guard case .column = link.storage else {
            // Each to-many relationship is one query by its index.
            for model in models {
                if link.isToMany { _ = model._$backing.many(slot) } else { _ = model._$backing.one(slot) }
            }
            return
        }
        let wanted = Set(
            models.compactMap { model -> Int64? in
                guard case .integer(let row) = model._$backing.stored(slot) else { return nil }
                return registry.model(link.destination.table, row) == nil ? row : nil
            })
        var held: [any PersistentModel] = []
        let all = wanted.sorted()
        for start in stride(from: 0, to: all.count, by: 1_000) {
            held += try select(link.destination, rows: all[start..<min(start + 1_000, all.count)])
        }
        for model in models { _ = model._$backing.one(slot) }
        withExtendedLifetime(held) {}
    }

    private func select(_ entity: EntityLayout, rows: ArraySlice<Int64>) throws -> [any PersistentModel] {
        let table = entity.table
        let type = table.hasTypeColumn ? "t0.\(TableLayout.type)" : "NULL"
        let columns = ["t0.\(TableLayout.key)", type] + table.columns.map { "t0.\($0.name.quotedName)" }
        let list = rows.map(String.init).joined(separator: ", ")
        let store = container.unit(of: entity).store
        let found = try store.mapErrors {
            try store.database.read { db in
                let statement = try PreparedStatement(
                    db,
                    "SELECT \(columns.joined(separator: ", ")) FROM \(table.name.quotedName) t0 WHERE t0.\(TableLayout.key) IN (\(list))"
                )
                return try Self.rows(statement, table)
            }
        }
        return try found.map { try model($0, entity, nil) }
    }
}
