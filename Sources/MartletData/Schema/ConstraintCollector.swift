/// Collects an entity's unique keys and indexes, and the columns of its row identity.
struct ConstraintCollector {
    let entity: EntityLayout

    func collect() throws {
        let table = entity.table
        for slot in entity.slots where isOwn(slot) {
            guard case .attribute(let attribute, _) = slot.kind, attribute.isUnique, let column = slot.column else {
                continue
            }
            try addUnique([table.columns[column].name])
        }
        for constraint in entity.type._$constraints {
            switch constraint {
            case .unique(let names): try addUnique(try columns(names))
            case .index(let names):
                let columns = try columns(names)
                if !table.indexes.contains(columns) { table.indexes.append(columns) }
            }
        }
        for slot in entity.slots {
            guard case .relationship(let link) = slot.kind, let column = slot.column, link.inverse != nil else {
                continue
            }
            let name = table.columns[column].name
            // To-many relationships are read through it, and SQLite searches it when a row is deleted.
            if !table.indexes.contains(where: { $0.first == name }) { table.indexes.append([name]) }
        }
    }

    private func isOwn(_ slot: EntityLayout.Slot) -> Bool {
        entity.superlayout?.slot(named: slot.name) == nil
    }

    private func columns(_ names: [String]) throws -> [String] {
        try names.map { name in
            guard let slot = entity.slot(named: name), let column = entity.slots[slot].column else {
                throw SwiftDataError.invalidSchema.because(
                    """
                    \(entity.name).\(name) has no column of its own: #Unique and #Index take stored attributes and \
                    relationships to one model.
                    """)
            }
            return entity.table.columns[column].name
        }
    }

    private func addUnique(_ columns: [String]) throws {
        let table = entity.table
        guard !table.uniqueKeys.contains(columns) else { return }
        table.uniqueKeys.append(columns)
        let isPreserved = columns.allSatisfy { name in
            entity.slots.contains { slot in
                guard case .attribute(let attribute, let type) = slot.kind, let column = slot.column else {
                    return false
                }
                return table.columns[column].name == name && attribute.preservesValue && !type.isOptional
            }
        }
        if isPreserved && table.identity.isEmpty && entity.superlayout == nil { table.identity = columns }
    }
}
