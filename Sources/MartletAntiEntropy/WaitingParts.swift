import GRDB
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore

/// A row that is pending outside of its table, or a value that is pending for its column, in one store.
struct WaitingPart: Hashable {
    var identity: StableID
    /// Nil: the whole row.
    var column: String?
    var reason: ParkReason

    /// The reasons that depend on the registers of rows alone: nodes with the same registers have the same pending
    /// parts.
    private static let reasons: Set<ParkReason> = [.missingTarget, .unique, .constraint]

    /// Returns the pending parts of each table.
    static func all(_ db: Database, _ context: ReplicaContext) throws -> [Int64: Set<WaitingPart>] {
        var found: [Int64: Set<WaitingPart>] = [:]
        for item in try ParkedItem.all(db, includingDeleted: false) {
            guard reasons.contains(item.reason), let identity = item.identity,
                let entity = item.entity.flatMap({ context.catalog.entity(named: $0) })
            else { continue }
            // If the row is in its table, only values of it are pending.
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
    /// Counts the pending parts of each of the stores, by reason.
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

    /// Adds the rows that have the same registers in all stores, but are shown in one store and pending in another.
    ///
    /// Stores that agree in all registers should agree in this. While a transaction is on its way, a row may be pending
    /// for just that one.
    mutating func compareWaiting() throws {
        // A row that a filter keeps out of a store competes with no row there, and no row there can refer to it.
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
    /// Returns everything that the store knows about one row.
    fileprivate func record(_ entity: Entity, _ identity: StableID) throws -> RowRecord? {
        try Applier(db, context).record(context.table(entity), identity)
    }
}
