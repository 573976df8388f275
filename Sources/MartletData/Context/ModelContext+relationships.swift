import GRDB
import MartletStore

extension ModelContext {
    /// The object for a row, from memory or from the store. Nil if the row is gone.
    func resolve(_ entity: EntityLayout, row: Int64) -> (any PersistentModel)? {
        if let known = registry.model(entity.table, row) { return known._$backing.state == .gone ? nil : known }
        if let unit = container.unit(of: entity).snapshots { return resolve(entity, [row], unit).first }
        return select(entity, "t0.\(TableLayout.key) = ?", row).first
    }

    /// The targets of a relationship: the store's rows, adjusted by unsaved changes.
    func load(_ link: Link, of backing: ModelBacking) -> [any PersistentModel] {
        guard let row = backing.row, let owner = backing.owner else { return [] }
        let destination = link.destination
        switch link.storage {
        case .column: return []
        case .list:
            guard let unit = container.unit(of: destination).snapshots,
                let slot = backing.layout?.slot(named: link.name)
            else { return [] }
            return resolve(destination, backing.lists[slot] ?? [], unit)
        case .join(let table, let own, let other):
            return select(
                destination,
                """
                t0.\(TableLayout.key) IN (SELECT \(other.quotedName) FROM \(table.quotedName) WHERE \(own.quotedName) \
                = ?)
                """,
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

    /// Reads rows of a table. A getter can't throw: a row that can't be read counts as missing.
    private func select(_ entity: EntityLayout, _ condition: String, _ value: Int64) -> [any PersistentModel] {
        let table = entity.table
        let text = SQLText(
            "SELECT \(table.selection) FROM \(table.name.quotedName) t0 WHERE \(condition) ORDER BY 1",
            [.integer(value)])
        guard let unit = container.unit(of: entity).tables else { return [] }
        let rows = unit.access.readForGetter { db in
            try Self.run(db, unit.statements, text) { try FetchedRow.all($0, entity) }
        }
        return (rows ?? []).compactMap { fetched in
            if let known = registry.model(table, fetched.row), !isOfAnotherClass(known, fetched) { return known }
            return try? model(fetched, nil)
        }
    }
}
