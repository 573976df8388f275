import GRDB
import MartletStore

extension ModelContext {
    /// Fetches transactions of the store's history, oldest first unless the descriptor says otherwise: of this context, of others,
    /// of other processes and of sync.
    ///
    /// - Throws: ``SwiftDataError/historyTokenExpired`` when the history after a token has been deleted, or the token is of another
    ///   store; ``SwiftDataError/unsupportedPredicate``; `StoreError`.
    public func fetchHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws -> [T] {
        var filter = try historyFilter(descriptor)
        guard !filter.isEmpty else { return [] }
        let order = Self.order(descriptor.sortBy)
        filter.query.newestFirst = order == .reverse
        if order != nil && filter.entities == nil { filter.query.limit = descriptor.fetchLimit }
        let found = try mapped { try container.store.fetchHistory(filter.query) }
        let reader = HistoryReader(container: container, entityOfRow: entityName)
        var transactions = found.map(reader.transaction).filter { transaction in
            guard let entities = filter.entities else { return true }
            return transaction.changes.contains { entities.contains($0.changedPersistentIdentifier.entityName) }
        }.compactMap { $0 as? T }
        if order == nil { transactions.sort(using: descriptor.sortBy) }
        return descriptor.fetchLimit.map { Array(transactions.prefix(max(0, $0))) } ?? transactions
    }

    /// Deletes the oldest transactions of the history, up to a token: `$0.token < token` or `<=`.
    ///
    /// What a registered cursor hasn't passed, or isn't published, stays.
    /// - Throws: ``SwiftDataError/unsupportedPredicate`` for any other predicate; as ``fetchHistory(_:)``.
    public func deleteHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws {
        let filter = try historyFilter(descriptor)
        guard !filter.isEmpty else { return }
        let query = filter.query
        guard query.after == nil, query.author == nil, query.entities.isEmpty, query.since == nil, query.before == nil
        else {
            throw SwiftDataError.unsupportedPredicate.because("History is deleted from its beginning up to a token.")
        }
        try mapped {
            guard let through = try query.through ?? container.store.lastToken() else { return }
            _ = try container.store.deleteHistory(through: through)
        }
    }

    private func historyFilter<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws -> HistoryFilter {
        guard T.self == DefaultHistoryTransaction.self else {
            throw SwiftDataError.unsupportedPredicate.because("The store's transactions are DefaultHistoryTransaction.")
        }
        var filter = HistoryFilter(layout: container.layout, store: container.store.identifier)
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

    private func entityName(_ table: TableLayout, _ row: Int64) -> String? {
        try? container.store.database.read { db in
            try String.fetchOne(
                db,
                sql: "SELECT \(TableLayout.type) FROM \(table.name.quotedName) WHERE \(TableLayout.key) = ?",
                arguments: [row])
        }
    }
}
