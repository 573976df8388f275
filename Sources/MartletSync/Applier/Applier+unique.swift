import GRDB
import MartletStore

extension Applier {
    /// What came of writing a row into its table.
    enum Written<T> {
        case done(T)
        /// Another row has a unique key, and keeps it.
        case lostUnique(StableID)
        /// The table refuses the values.
        case refused(String)
    }

    /// Updates a row; see ``attempt(_:_:_:_:_:)``.
    func write(
        _ table: EntityTable, _ identity: StableID, _ address: RowAddress, _ clocks: RowClocks,
        _ values: [(slot: Int, value: Value)]
    ) throws -> Written<Void> {
        guard !values.isEmpty else { return .done(()) }
        return try attempt(table, identity, clocks, values, address: address) { try table.update(db, address, values) }
    }

    /// Runs a write, and settles who keeps a unique key that two rows claim: the same one on every node, by the policy.
    /// A row that loses its key to this one steps aside.
    func attempt<T>(
        _ table: EntityTable, _ identity: StableID, _ clocks: RowClocks, _ values: [(slot: Int, value: Value)],
        address: RowAddress? = nil, _ body: () throws -> T
    ) throws -> Written<T> {
        do {
            return .done(try body())
        } catch let error as StoreError {
            guard let code = error.sqliteCode, code & 0xff == 19 else { throw error }
            // SQLITE_CONSTRAINT_UNIQUE, _PRIMARYKEY, _ROWID
            guard [2067, 1555, 2579].contains(code) else { return .refused(error.message) }
            let rivals = try rivals(table, identity, values, address)
            guard !rivals.isEmpty else { return .refused(error.message) }
            for rival in rivals where !wins(table, clocks, identity, over: rival) { return .lostUnique(rival.identity) }
            for rival in rivals {
                guard let found = try table.find(db, rival.identity) else { continue }
                let shadow = try evict(table, found, rival.identity)
                try park(table, rival.identity, shadow, behind: identity, winning: clocks.newest)
            }
            do {
                return .done(try body())
            } catch let error as StoreError where (error.sqliteCode ?? 0) & 0xff == 19 {
                return .refused(error.message)
            }
        }
    }

    struct Rival {
        var identity: StableID
        var clocks: RowClocks
    }

    /// The rows that have a unique key of these values.
    private func rivals(
        _ table: EntityTable, _ identity: StableID, _ values: [(slot: Int, value: Value)], _ address: RowAddress?
    ) throws -> [Rival] {
        var all = try address.flatMap { try table.read(db, $0) } ?? [:]
        for (slot, value) in values { all[slot] = value }
        var found: [Rival] = []
        for key in table.uniqueKeys {
            let claimed = key.columns.map { name in table.column(named: name).flatMap { all[$0.slot] } ?? .null }
            guard !claimed.contains(where: \.isNull) else { continue }
            for other in try holders(table, key, claimed)
            where other != identity && !found.contains(where: { $0.identity == other }) {
                guard let row = try table.find(db, other) else { continue }
                found.append(Rival(identity: other, clocks: row.clocks))
            }
        }
        return found
    }

    private func holders(_ table: EntityTable, _ key: UniqueKey, _ values: [Value]) throws -> [StableID] {
        let entity = table.entity
        let names = entity.isKeyedByInteger ? [entity.integerKey ?? ""] : entity.identityColumns.map(\.name)
        let match = zip(key.columns, key.collations).enumerated().map {
            "\($1.0.quotedName) = ?\($0 + 1) COLLATE \($1.1.quotedName)"
        }.joined(separator: " AND ")
        let condition = key.condition.map { " AND (\($0))" } ?? ""
        let find = try context.statement(
            db,
            "SELECT \(names.map(\.quotedName).joined(separator: ", ")) FROM \(entity.name.quotedName) WHERE \(match)\(condition)"
        )
        for (index, value) in values.enumerated() { find.bind(Int32(index + 1), value) }
        var rows: [[Value]] = []
        while try find.step() { rows.append(names.indices.map { find.value(Int32($0)) }) }
        return try rows.compactMap { row in
            if entity.isKeyedByInteger, case .integer(let key) = row[0] {
                return try context.resolver.identity(db, entity, row: key)
            }
            return try context.resolver.identity(db, entity, localValues: row)
        }
    }

    /// Ranks rows as a whole, not key by key: three rows that each beat the next one on another key would never come to rest.
    private func wins(_ table: EntityTable, _ clocks: RowClocks, _ identity: StableID, over rival: Rival) -> Bool {
        let mine = claim(table, clocks)
        let other = claim(table, rival.clocks)
        if mine == other { return rival.identity.bytes.lexicographicallyPrecedes(identity.bytes) }
        return table.entity.uniquePolicy == .keepOldest ? mine < other : mine > other
    }

    /// When the row claimed what it has of unique keys: the newest stamp of their columns.
    private func claim(_ table: EntityTable, _ clocks: RowClocks) -> Stamp {
        table.uniqueSlots.compactMap { clocks.stamp(of: $0) }.max() ?? .zero
    }

    /// Keeps a row aside that its table did not take.
    func keepAside<T>(_ table: EntityTable, _ identity: StableID, _ shadow: Shadow, _ written: Written<T>) throws {
        switch written {
        case .done: break
        case .lostUnique(let winner): try park(table, identity, shadow, behind: winner)
        case .refused(let detail): try shadows.save(table, identity, shadow, .constraint, detail: detail)
        }
    }

    func park(
        _ table: EntityTable, _ identity: StableID, _ shadow: Shadow, behind winner: StableID, winning: Stamp? = nil
    ) throws {
        let isNew = try shadows.load(table, identity) == nil
        try shadows.save(table, identity, shadow, .unique, detail: "a unique key of \(table.entity.name) is taken")
        guard isNew else { return }
        let winner = try winning ?? table.find(db, winner)?.clocks.newest ?? .zero
        yielded.append(
            Yielded(table: table, identity: identity, stamp: shadow.clocks.newest ?? .zero, winner: winner))
    }

    /// Notes those that had to give way. Not those that came back: rows of one transaction may hand on a key among themselves.
    func journalYielded() throws {
        var noted: Set<RowName> = []
        for row in yielded where try shadows.load(row.table, row.identity) != nil {
            guard noted.insert(RowName(entity: row.table.entity.id, identity: row.identity)).inserted else { continue }
            try journal.record(
                .unique, row.table, row.identity, slot: nil, value: .null, stamp: row.stamp, winner: row.winner)
        }
        yielded = []
    }
}
