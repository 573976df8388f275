import GRDB
import MartletStore

/// A row that waits outside of its table, or a value that waits for its column, in one store.
struct WaitingPart: Hashable {
    var identity: StableID
    /// Nil: the row as a whole.
    var column: String?
    var reason: ParkReason

    /// The reasons that the registers of rows decide, the same on each node: who has the same registers has the same
    /// waiting.
    private static let reasons: Set<ParkReason> = [.missingTarget, .unique, .constraint]

    /// What waits of each table.
    static func all(_ db: Database, _ context: EngineContext) throws -> [Int64: Set<WaitingPart>] {
        var found: [Int64: Set<WaitingPart>] = [:]
        for item in try ParkedItem.all(db, includingDeleted: false) {
            guard reasons.contains(item.reason), let identity = item.identity,
                let entity = item.entity.flatMap({ context.catalog.entity(named: $0) })
            else { continue }
            // Of a row that is in its table, values wait.
            let isThere = try context.table(entity).find(db, identity) != nil
            let columns: [String?] = isThere ? item.values.keys.map(Optional.some) : [nil]
            for column in columns {
                let part = WaitingPart(identity: identity, column: column, reason: item.reason)
                found[entity.id, default: []].insert(part)
            }
        }
        return found
    }
}

extension StoreComparison.Waiting {
    /// What waits in each of the stores, by reason.
    static func count(_ parts: [Set<WaitingPart>]) -> [Self] {
        let reasons = Set(parts.flatMap { $0.map(\.reason) })
        return ParkReason.allCases.filter(reasons.contains).map { reason in
            let found = parts.map { $0.filter { $0.reason == reason } }
            return Self(
                reason: reason, rowCounts: found.map { $0.count { $0.column == nil } },
                valueCounts: found.map { $0.count { $0.column != nil } })
        }
    }
}

extension StoreComparer {
    private static func isBefore(_ a: (key: StableID, value: Set<String?>), _ b: (key: StableID, value: Set<String?>))
        -> Bool
    {
        a.key.bytes.lexicographicallyPrecedes(b.key.bytes)
    }

    /// Rows whose registers are the same, and that are shown in one store and wait in another.
    ///
    /// Stores that agree in all registers should agree in this. While something is on its way, a row may wait for just
    /// that.
    mutating func compareWaiting() throws {
        // What a filter keeps out is no rival of any row there, and no row's target.
        guard !stores.contains(where: { !$0.context.filters.isEmpty }) else { return }
        let isSettled =
            result.members.allSatisfy { $0.missing.isEmpty && $0.uncheckedRowCount == 0 }
            && result.tables.allSatisfy {
                $0.skipped == nil && $0.divergentCount + $0.behindCount + $0.unpublishedCount == 0
            }
        for index in result.tables.indices where result.tables[index].skipped == nil {
            let entities = stores.compactMap { $0.context.catalog[result.tables[index].name] }
            guard entities.count == stores.count else { continue }
            let parts = zip(stores, entities).map { $0.waiting[$1.id] ?? [] }
            guard parts.contains(where: { $0 != parts[0] }) else { continue }
            var differing: [StableID: Set<String?>] = [:]
            for part in parts.reduce(into: Set(), { $0.formUnion($1) }) where !parts.allSatisfy({ $0.contains(part) }) {
                differing[part.identity, default: []].insert(part.column)
            }
            var table = result.tables[index]
            for (identity, columns) in differing.sorted(by: Self.isBefore) where !isKnown(identity, table.name) {
                let records = try zip(stores, entities).map { try $0.record($1, identity) }
                for column in columns.sorted(by: { ($0 ?? "") < ($1 ?? "") }) {
                    let states = parts.indices.map { index -> StoreComparison.State? in
                        guard let record = records[index] else { return nil }
                        let waits = parts[index].first { $0.identity == identity && $0.column == column }?.reason
                        let slot = column.flatMap { name in entities[index].columns.first { $0.name == name }?.slot }
                        guard column != nil else {
                            return record.existence.map { .init(stamp: $0.stamp, waits: waits) }
                        }
                        return slot.flatMap { record.register($0) }.map {
                            .init(stamp: $0.stamp, value: $0.value, waits: waits)
                        }
                    }
                    add(isSettled ? .divergent : .behind, identity, column, states, &table)
                }
            }
            result.tables[index] = table
        }
    }
}

extension ComparedStore {
    /// All that the store knows of one row.
    fileprivate func record(_ entity: Entity, _ identity: StableID) throws -> RowRecord? {
        try Applier(db, context).record(context.table(entity), identity)
    }
}
