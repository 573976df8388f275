import GRDB
package import MartletCore
package import MartletMerge
import MartletStore

extension Applier {
    /// The outcome of writing a row into its table.
    package enum Written<T> {
        case done(T)
        /// Another row has a unique key of this one, and keeps it.
        case lostUnique(StableID)
        /// The table refuses the values.
        case refused(String)
    }

    /// Updates a row; see ``attempt(_:_:_:_:_:)``.
    package func write(
        _ table: EntityTable, _ identity: StableID, _ address: RowAddress, _ clocks: RowClocks,
        _ values: [(slot: Int, value: Value)]
    ) throws -> Written<Void> {
        guard !values.isEmpty else { return .done(()) }
        return try attempt(table, identity, clocks, values, address: address) { try table.update(db, address, values) }
    }

    /// Runs a write, and settles which row keeps a unique key that two rows claim: by the policy, and so the same row
    /// on every node. A row that loses its key to this one is evicted.
    package func attempt<T>(
        _ table: EntityTable, _ identity: StableID, _ clocks: RowClocks, _ values: [(slot: Int, value: Value)],
        address: RowAddress? = nil, _ body: () throws -> T
    ) throws -> Written<T> {
        do {
            return .done(try body())
        } catch let error as StoreError {
            guard error.refusesRow else { throw error }
            guard error.isUniqueKey else { return .refused(error.message) }
            let rivals = try rivals(table, identity, values, address)
            guard !rivals.isEmpty else { return .refused(error.message) }
            for rival in rivals where !wins(table, clocks, identity, over: rival) { return .lostUnique(rival.identity) }
            for rival in rivals {
                if let rowid = rival.rowid {
                    try giveWay(table, rowid: rowid, to: identity, clocks)
                    continue
                }
                guard let address = rival.address else { continue }
                let found = EntityTable.Found(address: address, clocks: rival.clocks)
                let pendingRow = try evict(table, found, rival.identity)
                yieldCounts[RowIdentity(entity: table.entity.id, identity: rival.identity), default: 0] += 1
                try park(table, rival.identity, pendingRow, behind: identity, winning: clocks.newest)
            }
            do {
                return .done(try body())
            } catch let error as StoreError where error.refusesRow {
                // The reason is another one than the rows that gave way.
                context.news.note(freed: table.entity.id)
                return .refused(error.message)
            }
        }
    }

    /// Returns the entity's rows that wait for a unique key, winners first: then hardly any row comes back only to give
    /// way again.
    package func strongestFirst(_ entity: Int64) throws -> [RowIdentity] {
        try strongestFirst(pendingRows.waiting(entity, .unique))
    }

    /// Returns the rows grouped by table. Within a table whose rows may claim each other's unique keys, the order
    /// depends on stamps alone.
    package func strongestFirst(_ names: [RowIdentity]) throws -> [RowIdentity] {
        guard names.count > 1 else { return names }
        return try Dictionary(grouping: names, by: \.entity).sorted { $0.key < $1.key }.flatMap { id, names in
            // A unique key may be made from no column at all.
            guard names.count > 1, let table = context.catalog[id].map(context.table), !table.entity.uniqueKeys.isEmpty
            else { return names }
            let rows = try names.compactMap { name in
                let clocks = try table.find(db, name.identity)?.clocks ?? pendingRows.load(table, name.identity)?.clocks
                return clocks.map { Rival(identity: name.identity, clocks: $0) }
            }
            return rows.sorted { wins(table, $0.clocks, $0.identity, over: $1) }
                .map { RowIdentity(entity: id, identity: $0.identity) }
        }
    }

    /// Returns false for a row that has returned once to a freed key and was displaced again: it would be displaced
    /// again and again. It stays pending, on every node, until something else happens to the table.
    package func mayReturn(_ row: RowIdentity) -> Bool { yieldCounts[row, default: 0] < 2 }

    package struct Rival {
        package var identity: StableID
        package var clocks: RowClocks
        /// The row's place in its table. Its ID may not lead there, if a row that the ID contains has left in this
        /// transaction.
        package var address: RowAddress?
        /// Set for a row without an ID.
        package var rowid: Int64?
    }

    /// Returns the rows that hold a unique key of these values, whatever kind of key it is. SQLite itself finds them,
    /// one after the other, as each is taken out of the way. All of that is rolled back.
    ///
    /// - Returns: an empty array if one of them can't be identified.
    package func rivals(
        _ table: EntityTable, _ identity: StableID, _ values: [(slot: Int, value: Value)], _ address: RowAddress?
    ) throws -> [Rival] {
        var row = try address.flatMap { try table.read(db, $0) } ?? [:]
        for (slot, value) in values { row[slot] = value }
        let claim = row.sorted { $0.key < $1.key }.map { (slot: $0.key, value: $0.value) }
        // A new row gets any free integer key.
        let key = address?.row
        var found: [Rival] = []
        func look() throws {
            if let address { try table.delete(db, address) }
            while try !table.insertUnlessRefused(db, row: key, claim) {
                guard let values = try table.findRival(db, row: key, claim) else {
                    found = []
                    break
                }
                if let rowid = table.withoutIdentity(values) {
                    found.append(Rival(identity: .withoutIdentity, clocks: RowClocks(), rowid: rowid))
                    try table.delete(db, rowid: rowid)
                    continue
                }
                guard let (address, other) = try self.row(table, values), other != identity else {
                    found = []
                    break
                }
                let clocks = try table.clocks(db, row: address.row, other) ?? RowClocks(inserted: .zero)
                found.append(Rival(identity: other, clocks: clocks, address: address))
                try table.delete(db, address)
            }
        }
        try db.inSavepoint {
            if let derived = table.derived { try derived.without(look) } else { try look() }
            return .rollback
        }
        return found
    }

    /// Ranks rows as a whole, not key by key: three rows that each beat the next one on another key would never settle.
    package func wins(_ table: EntityTable, _ clocks: RowClocks, _ identity: StableID, over rival: Rival) -> Bool {
        // A row that only this node has gives way to one that all nodes have.
        if rival.identity.hasNoIdentity { return !identity.hasNoIdentity }
        if identity.hasNoIdentity { return false }
        let mine = claim(table, clocks)
        let other = claim(table, rival.clocks)
        if mine == other { return rival.identity.bytes.lexicographicallyPrecedes(identity.bytes) }
        return table.entity.uniquePolicy == .keepOldest ? mine < other : mine > other
    }

    /// Returns when the row claimed its unique keys: the newest stamp of the columns that they are made from.
    package func claim(_ table: EntityTable, _ clocks: RowClocks) -> Stamp {
        table.uniqueSlots.compactMap { clocks.stamp(of: $0) }.max() ?? .zero
    }

    /// Stores a row as pending that its table did not take.
    package func makePending<T>(
        _ table: EntityTable, _ identity: StableID, _ pendingRow: PendingRow, _ written: Written<T>
    )
        throws
    {
        switch written {
        case .done: break
        case .lostUnique(let winner): try park(table, identity, pendingRow, behind: winner)
        case .refused(let detail): try pendingRows.save(table, identity, pendingRow, .constraint, detail: detail)
        }
    }

    package func park(
        _ table: EntityTable, _ identity: StableID, _ pendingRow: PendingRow, behind winner: StableID,
        winning: Stamp? = nil,
        wait: [UInt8]? = nil
    ) throws {
        let isNew = try pendingRows.load(table, identity) == nil
        try pendingRows.save(
            table, identity, pendingRow, .unique, detail: "a unique key of \(table.entity.name) is taken", wait: wait)
        guard isNew else { return }
        blocked += try rowsWaiting(for: identity, of: table, pendingRow)
        let winner = try winning ?? table.find(db, winner)?.clocks.newest ?? .zero
        yielded.append(
            Yielded(table: table, identity: identity, stamp: pendingRow.clocks.newest ?? .zero, winner: winner))
    }

    /// Journals rows that had to give way, except those that came back: rows of one transaction may pass on a key among
    /// themselves.
    package func journalYielded() throws {
        var noted: Set<RowIdentity> = []
        for row in yielded where try pendingRows.load(row.table, row.identity) != nil {
            guard noted.insert(RowIdentity(entity: row.table.entity.id, identity: row.identity)).inserted else {
                continue
            }
            try journal.record(
                .unique, row.table, row.identity, slot: nil, value: .null, stamp: row.stamp, winner: row.winner)
        }
        yielded = []
    }
}
