import GRDB
package import MartletCore
package import MartletStore

/// Rows whose target a program has removed here with foreign keys switched off. They become pending, as on every other
/// node.
extension Applier {
    /// Makes rows pending that refer to what local changes left behind.
    package func adopt(_ left: [Int64: RemovedTargets.Left]) throws {
        for (id, left) in left.sorted(by: { $0.key < $1.key }) {
            guard let entity = context.catalog[id] else { continue }
            noteTargetGone(entity)
            try adoptRows(entity, left.rows)
            for key in context.valueKeys.byTarget[id] ?? [] {
                if left.isUnknown {
                    // Every dangling row referred to a row that is gone, or was written without a target.
                    try detachDangling(key)
                } else {
                    let values = Set(left.rows.map { key.targetValues($0.values, $0.row) })
                    for values in values where !values.contains(.null) { try detach(key, from: values) }
                }
            }
        }
    }

    /// Handles removed rows whose integer key other rows still hold.
    private func adoptRows(_ entity: Entity, _ rows: [RemovedTarget]) throws {
        let table = context.table(entity)
        let referred = try referred(entity, rows.compactMap(\.row))
        for left in rows {
            // A row that took over the key also took over the references; the enqueuer published that.
            guard let row = left.row, referred.contains(row), try !table.hasRow(db, row) else { continue }
            // If several rows had the key, other nodes were told of the last one.
            guard let identity = try context.resolver.retired(db, entity, row: row, after: 0) ?? left.identity else {
                continue
            }
            let orphan = Orphan(table: table, identity: identity, row: row, values: left.values)
            guard try table.find(db, identity) != nil else {
                orphans.append(orphan)
                continue
            }
            // The row has another key now: references follow it, as on every other node.
            try detachReferences(to: orphan, row)
            context.noteArrival(entity, identity)
        }
    }

    /// Returns the integer keys that rows refer to, and that no row of the entity has.
    package func danglingKeys(_ entity: Entity) throws -> Set<Int64> {
        var dangling: Set<Int64> = []
        guard let key = entity.integerKey else { return dangling }
        for other in context.catalog.entities {
            for column in other.columns where column.reference == entity.name {
                let name = "_martlet_row.\(column.name.quotedName)"
                let find = try PreparedStatement(
                    db,
                    """
                    SELECT DISTINCT \(name) FROM \(other.name.quotedName) AS _martlet_row WHERE \(name) IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM \(entity.name.quotedName) AS t WHERE t.\(key.quotedName) = \(name))
                    """)
                while try find.step() { if let row = column.referredRow(find.value(0)) { dangling.insert(row) } }
            }
        }
        return dangling
    }

    /// - Returns: those of the entity's integer keys that rows refer to.
    package func referred(_ entity: Entity, _ rows: [Int64]) throws -> Set<Int64> {
        var referred: Set<Int64> = []
        guard !rows.isEmpty else { return referred }
        let part = 200
        for other in context.catalog.entities {
            for column in other.columns where column.reference == entity.name {
                let name = column.name.quotedName
                let parameters = (1...part).map { "?\($0)" }.joined(separator: ", ")
                let find = try context.statement(
                    db,
                    "SELECT DISTINCT \(name) FROM \(other.name.quotedName) WHERE \(name) IN (\(parameters))")
                for first in stride(from: 0, to: rows.count, by: part) {
                    for index in 0..<part { find.bind(Int32(index + 1), rows[min(first + index, rows.count - 1)]) }
                    while try find.step() { referred.insert(find.integer(0)) }
                }
            }
        }
        return referred
    }

    /// Makes rows pending that refer by the key to a target with these values, if there is no such target.
    package func detach(_ key: ValueKey, from values: [Value]) throws {
        // Any row with the values will do.
        guard try !hasTarget(key, values) else { return }
        // Values that the referring column takes as equal may differ for the target's column, as 0 and '0' do.
        try detach(key, where: "\(key.isReferring) AND \(key.isDangling)", values)
    }

    private func detachDangling(_ key: ValueKey) throws { try detach(key, where: key.isDangling, []) }

    private func detach(_ key: ValueKey, where condition: String, _ values: [Value]) throws {
        let table = context.table(key.entity)
        for (child, found) in try rows(table, where: condition, values) {
            guard let row = try table.read(db, found.address) else { continue }
            let claimed = key.slots.map { row[$0] ?? .null }
            if claimed.contains(.null) { continue }
            let waiting = try key.yielding.map { column in
                let current = row[column.slot] ?? .null
                let value = try portableValues(table, child, [column.slot: current])[column.slot] ?? current
                return (column.slot, value)
            }
            // Waits for the target's values, if they are known: the row may have them in another form.
            let wait = key.wait(for: values.isEmpty ? claimed : values)
            try detach(table, child, found, waiting, wait: wait, detail: key.detail)
        }
        try detachWithoutIdentity(table, where: condition, values, key.yielding, detail: key.detail) { row in
            key.wait(for: values.isEmpty ? key.slots.map { row[$0] ?? .null } : values)
        }
    }
}
