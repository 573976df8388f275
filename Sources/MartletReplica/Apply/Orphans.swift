package import MartletCore
package import MartletStore

/// A row that is gone, with the values that other rows may have referred to.
package struct Orphan {
    // A reference: one transaction may delete any number of rows, and a copy of the entity takes 150 bytes.
    package var table: EntityTable
    package var identity: StableID
    package var row: Int64?
    package var values: [Int: Value]
    /// True for a row that is still in its table, but has left a key that others may refer to.
    package var isHere = false

    package var entity: Entity { table.entity }
    fileprivate var name: RowIdentity { RowIdentity(entity: table.entity.id, identity: identity) }

    package init(table: EntityTable, identity: StableID, row: Int64?, values: [Int: Value], isHere: Bool = false) {
        self.table = table
        self.identity = identity
        self.row = row
        self.values = values
        self.isHere = isHere
    }
}

/// The orphans that are yet to be settled, the last one first. The integer keys that they left are looked up without
/// going through all of them: a transaction may insert as many rows as it deletes.
package struct Orphans {
    /// How often in succession a row left the same integer key.
    private struct Departures {
        var row: Int64?
        var count: Int
    }

    private var stack: [Orphan] = []
    /// How many orphans left each integer key.
    private var holders: [RowKey: Int] = [:]
    /// What each row left, oldest first.
    private var departures: [RowIdentity: [Departures]] = [:]

    package init() {}

    package var isEmpty: Bool { stack.isEmpty }

    package var count: Int { stack.count }

    package mutating func append(_ orphan: Orphan) {
        stack.append(orphan)
        guard !orphan.isHere else { return }
        if let row = orphan.row { holders[RowKey(entity: orphan.entity.id, row: row), default: 0] += 1 }
        var own = departures.removeValue(forKey: orphan.name) ?? []
        if let last = own.indices.last, own[last].row == orphan.row {
            own[last].count += 1
        } else {
            own.append(Departures(row: orphan.row, count: 1))
        }
        departures[orphan.name] = own
    }

    package mutating func popLast() -> Orphan? {
        guard let orphan = stack.popLast() else { return nil }
        guard !orphan.isHere else { return orphan }
        if let row = orphan.row {
            let key = RowKey(entity: orphan.entity.id, row: row)
            let rest = (holders[key] ?? 0) - 1
            holders[key] = rest > 0 ? rest : nil
        }
        var own = departures.removeValue(forKey: orphan.name) ?? []
        if let last = own.indices.last {
            own[last].count -= 1
            if own[last].count == 0 { own.removeLast() }
        }
        if !own.isEmpty { departures[orphan.name] = own }
        return orphan
    }

    /// Returns true if another row of the table left the integer key: others may still refer to that row by it.
    package func hold(_ row: Int64, besides name: RowIdentity) -> Bool {
        guard let count = holders[RowKey(entity: name.entity, row: row)] else { return false }
        return count > (departures[name] ?? []).reduce(0) { $0 + ($1.row == row ? $1.count : 0) }
    }

    /// Returns the integer key that the row left last.
    package func row(of name: RowIdentity) -> Int64? { departures[name]?.last?.row }
}
