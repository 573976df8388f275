import GRDB
import MartletStore

extension ModelContext {
    /// Fetches transactions of the history, oldest first unless the descriptor says otherwise: of this context, of others,
    /// of other processes and of sync.
    ///
    /// Where the container has several stores, the transactions of each are in their own order, and the stores are merged by time; the
    /// limit counts the merged ones. A token is of one store: a condition on it leaves the other stores' transactions out. Keep
    /// one token for each `storeIdentifier`.
    /// - Throws: ``SwiftDataError/historyTokenExpired`` when the history after a token has been deleted, or the token is of another
    ///   store; ``SwiftDataError/unsupportedPredicate``; `StoreError`.
    public func fetchHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws -> [T] {
        let order = Self.order(descriptor.sortBy)
        let found = try container.units.map { try fetchHistory(descriptor, of: $0, order) }
        var transactions = found.count == 1 ? found[0] : HistoryMerge.merge(found, order ?? .forward)
        if order == nil { transactions.sort(using: descriptor.sortBy) }
        return descriptor.fetchLimit.map { Array(transactions.prefix(max(0, $0))) } ?? transactions
    }

    private func fetchHistory<T: HistoryTransaction>(
        _ descriptor: HistoryDescriptor<T>, of unit: TableUnit, _ order: SortOrder?
    ) throws -> [T] {
        var filter = try historyFilter(descriptor, of: unit)
        guard !filter.isEmpty else { return [] }
        filter.query.newestFirst = order == .reverse
        if order != nil && filter.entities == nil { filter.query.limit = descriptor.fetchLimit }
        let found = try mapped { try unit.store.fetchHistory(filter.query) }
        let reader = HistoryReader(unit: unit) { table, row in Self.entityName(unit, table, row) }
        return found.map(reader.transaction).filter { transaction in
            guard let entities = filter.entities else { return true }
            return transaction.changes.contains { entities.contains($0.changedPersistentIdentifier.entityName) }
        }.compactMap { $0 as? T }
    }

    /// Deletes the oldest transactions of the history, up to a token: `$0.token < token` or `<=`. Without a condition on the store,
    /// of every store of the container.
    ///
    /// What a registered cursor hasn't passed, or isn't published, stays.
    /// - Throws: ``SwiftDataError/unsupportedPredicate`` for any other predicate; as ``fetchHistory(_:)``.
    public func deleteHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws {
        // All are looked at before the first deletes.
        let filters = try container.units.map { ($0, try historyFilter(descriptor, of: $0)) }.filter { !$0.1.isEmpty }
        for (_, filter) in filters {
            let query = filter.query
            guard query.after == nil, query.author == nil, query.entities.isEmpty, query.since == nil,
                query.before == nil
            else {
                throw SwiftDataError.unsupportedPredicate.because(
                    "History is deleted from its beginning up to a token.")
            }
        }
        for (unit, filter) in filters {
            try mapped {
                guard let through = try filter.query.through ?? unit.store.lastToken() else { return }
                _ = try unit.store.deleteHistory(through: through)
            }
        }
    }

    private func historyFilter<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>, of unit: TableUnit) throws
        -> HistoryFilter
    {
        guard T.self == DefaultHistoryTransaction.self else {
            throw SwiftDataError.unsupportedPredicate.because("The store's transactions are DefaultHistoryTransaction.")
        }
        let others = Set(container.units.map(\.store.identifier)).subtracting([unit.store.identifier])
        var filter = HistoryFilter(layout: unit.layout, store: unit.store.identifier, others: others)
        if let predicate = descriptor.predicate { try filter.require(predicate.expression) }
        return filter
    }

    /// The direction of an order that is the history's own. Nil for any other order.
    private static func order<T: HistoryTransaction>(_ sortBy: [SortDescriptor<T>]) -> SortOrder? {
        guard let first = sortBy.first else { return .forward }
        switch first.keyPath as AnyKeyPath? {
        case \DefaultHistoryTransaction.transactionIdentifier, \DefaultHistoryTransaction.token: return first.order
        default: return nil
        }
    }

    private func mapped<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as StoreError where error.code == .historyTokenExpired {
            throw SwiftDataError.historyTokenExpired.because(error.message)
        }
    }

    private static func entityName(_ unit: TableUnit, _ table: TableLayout, _ row: Int64) -> String? {
        try? unit.store.database.read { db in
            try String.fetchOne(
                db,
                sql: "SELECT \(TableLayout.type) FROM \(table.name.quotedName) WHERE \(TableLayout.key) = ?",
                arguments: [row])
        }
    }
}
