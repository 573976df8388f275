import GRDB
import MartletStore

extension ModelContext {
    /// Fetches transactions of the history, oldest first unless the descriptor says otherwise: of this context, of others,
    /// of other processes and of sync.
    ///
    /// Where the container has several stores, the transactions of each are in their own order, and the stores are merged by time; the
    /// limit counts the merged ones. A token is of one store: a condition on it leaves the other stores' transactions out. Keep
    /// one token for each `storeIdentifier`. Stores of one's own are asked for their type of transactions, with the whole descriptor.
    /// - Throws: ``SwiftDataError/historyTokenExpired`` when the history after a token has been deleted, or the token is of another
    ///   store; ``SwiftDataError/unsupportedPredicate``; `StoreError`.
    public func fetchHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws -> [T] {
        let order = Self.order(descriptor.sortBy)
        let found = try container.units.compactMap { unit in
            switch unit {
            case .tables(let unit):
                T.self == DefaultHistoryTransaction.self ? try fetchHistory(descriptor, of: unit, order) : nil
            case .snapshots(let unit): try unit.call { try $0.fetchHistory(descriptor) }
            }
        }
        guard !found.isEmpty else { throw Self.noHistory(T.self) }
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
        let found = try mapped { try unit.access.fetchHistory(filter.query) }
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
        var isDone = false
        for unit in container.units.compactMap(\.snapshots) where try unit.call({ try $0.deleteHistory(descriptor) }) {
            isDone = true
        }
        guard T.self == DefaultHistoryTransaction.self else {
            guard isDone else { throw Self.noHistory(T.self) }
            return
        }
        let filters = try container.units.compactMap(\.tables).map { ($0, try historyFilter(descriptor, of: $0)) }
            .filter { !$0.1.isEmpty }
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
            try mapped { try unit.access.deleteHistory(through: filter.query.through) }
        }
    }

    private func historyFilter<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>, of unit: TableUnit) throws
        -> HistoryFilter
    {
        let others = Set(container.units.compactMap(\.tables?.store.identifier)).subtracting([unit.store.identifier])
        var filter = HistoryFilter(layout: unit.layout, store: unit.store.identifier, others: others)
        if let predicate = descriptor.predicate { try filter.require(predicate.expression) }
        return filter
    }

    private static func noHistory<T>(_ type: T.Type) -> SwiftDataError {
        .invalidTransactionFetchRequest.because(
            "No store of the container keeps a history of \(T.self). Tables keep one of DefaultHistoryTransaction; a store of one's own does when it is HistoryProviding."
        )
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
        try? unit.access.read { db in
            try String.fetchOne(
                db,
                sql: "SELECT \(TableLayout.type) FROM \(table.name.quotedName) WHERE \(TableLayout.key) = ?",
                arguments: [row])
        }
    }
}
