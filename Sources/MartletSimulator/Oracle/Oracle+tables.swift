package import MartletStore
import MartletSync

/// Rows of a store, by table and stable ID: their non-null values, with references by the stable ID of their target.
package typealias Rows = [String: [StableID: [String: Value]]]

extension Oracle {
    /// The contents of the tables: the rows that are alive, without those that lost a unique key or whose target is
    /// missing, and without references to missing rows.
    ///
    /// - Parameter defaults: the values of columns that were never set, by table.
    /// - Returns: nil if rows depend on each other in a way that has no single solution, or a table has a unique key
    ///   that doesn't consist of plain columns.
    package func tables(_ entities: [Entity], defaults: [String: [String: Value]] = [:]) -> Rows? {
        guard entities.allSatisfy({ knows($0, entities) }) else { return nil }
        // Starts with all rows: rows that require each other are visible together.
        var shown: Rows = [:]
        for (name, row) in rows where row.isAlive { shown[name.entity, default: [:]][name.identity] = [:] }
        // A row that appears or disappears may change which other rows are allowed, in other tables too.
        for _ in 0..<50 {
            var next: Rows = [:]
            for entity in entities {
                next[entity.name] = rows(of: entity, entities, shown: shown, defaults[entity.name] ?? [:])
            }
            if next == shown { return shown }
            shown = next
        }
        return nil
    }

    /// Returns true if the rules below are all that apply to the table.
    private func knows(_ entity: Entity, _ entities: [Entity]) -> Bool {
        let names = Set(entity.columns.map(\.name) + (entity.integerKey.map { [$0] } ?? []))
        return entity.uniqueKeys.allSatisfy { key in
            key.condition == nil && !key.hasExpression && names.isSuperset(of: key.columns)
                && key.collations.allSatisfy { ["BINARY", "NOCASE"].contains($0.uppercased()) }
        }
            && entity.foreignKeys.allSatisfy { key in
                guard key.columns.count == 1,
                    let target = entities.first(where: { $0.name.lowercased() == key.target.lowercased() })
                else { return false }
                // The collation of such a key may treat different IDs as equal.
                if target.uniqueKeys.contains(where: { $0.columns == target.identityColumns.map(\.name) }) {
                    return false
                }
                return key.targetColumns.isEmpty || target.identityColumns.map(\.name) == key.targetColumns
                    || target.integerKey == key.targetColumns[0]
            }
    }

    private func rows(
        of entity: Entity, _ entities: [Entity], shown: Rows, _ defaults: [String: Value]
    ) -> [StableID: [String: Value]] {
        var candidates: [(identity: StableID, values: [String: Value], claim: Stamp)] = []
        for (name, row) in rows where name.entity == entity.name && row.isAlive {
            guard let values = values(of: row, name.identity, entity, entities, shown, defaults) else { continue }
            candidates.append((name.identity, values, claim(row, entity)))
        }
        // The row that comes first may keep its unique keys.
        candidates.sort { a, b in
            if a.claim == b.claim { return b.identity.bytes.lexicographicallyPrecedes(a.identity.bytes) }
            return entity.uniquePolicy == .keepOldest ? a.claim < b.claim : a.claim > b.claim
        }
        var shown: [StableID: [String: Value]] = [:]
        var taken: Set<[Value]> = []
        for candidate in candidates {
            let keys = keys(of: candidate.values, entity)
            if keys.contains(where: taken.contains) { continue }
            taken.formUnion(keys)
            shown[candidate.identity] = candidate.values
        }
        return shown
    }

    /// Nil if a required target is missing.
    private func values(
        of row: Row, _ identity: StableID, _ entity: Entity, _ entities: [Entity], _ shown: Rows,
        _ defaults: [String: Value]
    ) -> [String: Value]? {
        var values: [String: Value] = [:]
        for column in entity.columns {
            let value = row.register(column.name)?.value ?? defaults[column.name] ?? .null
            if value.isNull { continue }
            if let target = target(of: value, column, entity, entities),
                shown[target.entity]?[target.identity] == nil,
                target != Name(entity: entity.name, identity: identity)
            {
                if column.isNotNull || entity.identityColumns.contains(column) { return nil }
                continue
            }
            values[column.name] = value
        }
        return values
    }

    /// The row that the value refers to. Nil if it refers to none, or to one without a stable ID.
    private func target(
        of value: Value, _ column: EntityColumn, _ entity: Entity, _ entities: [Entity]
    ) -> Name? {
        let key = entity.foreignKeys.first { $0.columns == [column.name] }
        let target = entities.first { $0.name.lowercased() == key?.target.lowercased() }
        // A reference to a column that is a reference itself contains the latter's row.
        if case .reference(let reference) = value, target == nil || target?.name == reference.entity {
            return Name(entity: reference.entity, identity: reference.identity)
        }
        guard let key, let target, target.identityColumns.map(\.name) == key.targetColumns else { return nil }
        return Name(entity: target.name, identity: StableID(values: [value]))
    }

    /// The stamp with which the row claimed its values in unique keys.
    private func claim(_ row: Row, _ entity: Entity) -> Stamp {
        let columns = Set(entity.uniqueKeys.flatMap(\.columns))
        return columns.compactMap { row.register($0)?.stamp }.max() ?? .zero
    }

    private func keys(of values: [String: Value], _ entity: Entity) -> [[Value]] {
        entity.uniqueKeys.enumerated().compactMap { number, key in
            let claimed = zip(key.columns, key.collations).map { name, collation -> Value? in
                guard let value = values[name] else { return nil }
                switch value {
                case .text(let text) where collation.uppercased() == "NOCASE": return .text(Self.folded(text))
                // 1 and 1.0 are equal in an index.
                case .real(let number): return Int64(exactly: number).map { .integer($0) } ?? value
                default: return value
                }
            }
            let all = claimed.compactMap(\.self)
            return all.count == claimed.count ? [.integer(Int64(number))] + all : nil
        }
    }

    /// Like SQLite: ASCII letters only.
    private static func folded(_ text: String) -> String {
        String(decoding: text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    }
}
