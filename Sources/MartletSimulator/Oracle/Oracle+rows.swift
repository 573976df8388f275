package import MartletStore
package import MartletSync

/// The rules for any table, whatever its constraints: which rows are alive, and which values their columns have.
extension Oracle {
    /// The first problem with the rows of a node. Nil if there is none.
    ///
    /// - Parameters:
    ///   - shown: the rows in its tables.
    ///   - pending: its pending changes.
    ///   - defaults: the values of columns that were never set, by table.
    package func problem(
        with shown: Rows, pending: [ParkedItem], _ entities: [Entity], defaults: [String: [String: Value]]
    ) -> String? {
        var waiting: Set<Name> = []
        var references: [Name: [String: Value]] = [:]
        for item in pending {
            guard let entity = item.entity, let identity = item.identity else { continue }
            let name = Name(entity: entity, identity: identity)
            if item.id.hasPrefix("p") {
                references[name, default: [:]].merge(item.values) { a, _ in a }
            } else {
                waiting.insert(name)
            }
        }
        for entity in entities.sorted(by: { $0.name < $1.name }) {
            let found = shown[entity.name] ?? [:]
            for (name, row) in rows.sorted(by: {
                $0.key.identity.bytes.lexicographicallyPrecedes($1.key.identity.bytes)
            })
            where name.entity == entity.name {
                let text = "\(entity.name) \(ValueText.text(name.identity))"
                guard let values = found[name.identity] else {
                    if row.isAlive, !waiting.contains(name) { return "\(text) is alive, but neither shown nor parked" }
                    continue
                }
                if !row.isAlive { return "\(text) is deleted, but shown" }
                if waiting.contains(name) { return "\(text) is both shown and parked" }
                for column in entity.columns {
                    let wanted = row.register(column.name)?.value ?? defaults[entity.name]?[column.name] ?? .null
                    let value = values[column.name] ?? .null
                    if value == wanted || (value.isNull && references[name]?[column.name] == wanted) { continue }
                    if case .reference = wanted, isUnchecked(value, column, entity, values) { continue }
                    return
                        "\(text): \(column.name) should be \(ValueText.text(wanted)), but is \(ValueText.text(value))"
                }
            }
            for identity in found.keys where rows[Name(entity: entity.name, identity: identity)] == nil {
                return "\(entity.name) \(ValueText.text(identity)) is shown, but was never published"
            }
        }
        return nil
    }

    /// Returns true for the number of a missing row that SQLite doesn't check: another column of the same foreign key
    /// is NULL.
    private func isUnchecked(
        _ value: Value, _ column: EntityColumn, _ entity: Entity, _ values: [String: Value]
    ) -> Bool {
        guard case .integer = value else { return false }
        return entity.foreignKeys.contains { key in
            key.columns.contains(column.name) && key.columns.contains { values[$0] == nil }
        }
    }
}
