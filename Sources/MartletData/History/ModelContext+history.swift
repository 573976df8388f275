import GRDB
import MartletStore

extension ModelContext {
    /// Fetches transactions of the history, oldest first unless the descriptor specifies another order: those of this
    /// context, of other contexts and processes, and of sync. SQLite evaluates the predicate, the order and the limit.
    ///
    /// If the container has several stores, the transactions of each keep their own order, and the stores are merged by
    /// time; the limit applies to the merged result. A token belongs to one store: a condition on it excludes the other
    /// stores' transactions. Keep one token for each `storeIdentifier`. Custom stores receive the whole descriptor if
    /// they have its type of transactions.
    /// - Throws: ``SwiftDataError/historyTokenExpired`` if the history after a token has been deleted, or the token
    ///   belongs to another store; ``SwiftDataError/unsupportedPredicate`` and
    ///   ``SwiftDataError/unsupportedSortDescriptor`` if they can't be translated to SQL; `StoreError`.
    public func fetchHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws -> [T] {
        var isFromOwnStore = false
        let found = try container.units.compactMap { unit -> [T]? in
            switch unit {
            case .tables(let unit):
                return T.self == DefaultHistoryTransaction.self ? try fetchHistory(descriptor, of: unit) : nil
            case .snapshots(let unit):
                guard let found = try unit.call({ try $0.fetchHistory(descriptor) }) else { return nil }
                isFromOwnStore = true
                return found
            }
        }
        guard let first = found.first else { throw Self.noHistory(T.self) }
        // A custom store may have left order and limit to the context.
        guard found.count > 1 || isFromOwnStore else { return first }
        var transactions: [T]
        switch descriptor.sortBy.first?.keyPath as AnyKeyPath? {
        case nil: transactions = HistoryMerge.merge(found, .forward)
        case \DefaultHistoryTransaction.transactionIdentifier, \DefaultHistoryTransaction.token:
            transactions = HistoryMerge.merge(found, descriptor.sortBy[0].order)
        default:
            transactions = found.flatMap { $0 }
            transactions.sort(using: descriptor.sortBy)
        }
        return descriptor.fetchLimit == 0
            ? transactions : Array(transactions.prefix(Int(clamping: descriptor.fetchLimit)))
    }

    private func fetchHistory<T: HistoryTransaction>(
        _ descriptor: HistoryDescriptor<T>, of unit: TableUnit
    ) throws -> [T] {
        var query = HistoryQuery()
        query.limit = descriptor.fetchLimit == 0 ? nil : Int(clamping: descriptor.fetchLimit)
        let found = try Self.mapped {
            try unit.access.fetchHistory(query) { names in
                let scope = HistoryScope(names, unit, of: container)
                var clause = try Self.clause(descriptor.predicate, scope, unit)
                clause.order = try descriptor.sortBy.compactMap { try Self.order($0, scope) }
                return clause
            }
        }
        let reader = HistoryReader(unit: unit, entityOfRow: unit.entityName)
        return found.compactMap { reader.transaction($0) as? T }
    }

    /// Deletes the transactions of the history that match a predicate. Without a predicate, deletes all; without a
    /// condition on the store, in every store of the container.
    ///
    /// Transactions that a registered cursor hasn't passed, or that aren't published, are kept.
    ///
    /// If the predicate is only an upper bound (`$0.token < token`, or `<=`, or by `transactionIdentifier`, or
    /// `$0.timestamp < date`), the history starts later from then on, and older tokens expire. Any other predicate
    /// removes transactions from the middle (those of one author, for example): earlier tokens stay valid, and a reader
    /// that continues from one doesn't learn that transactions are missing.
    /// - Throws: ``SwiftDataError/unsupportedPredicate`` if the predicate can't be translated to SQL; the same as
    ///   ``fetchHistory(_:)``.
    public func deleteHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws {
        // All tables are checked before the first store deletes anything.
        let tables = T.self == DefaultHistoryTransaction.self ? container.units.compactMap(\.tables) : []
        let stores = Set(tables.map(\.store.identifier))
        let deletions = try tables.map { unit -> () throws -> Void in
            let own = unit.store.identifier
            if let range = try HistoryRange(descriptor.predicate, store: own, others: stores.subtracting([own])) {
                return { [self] in if !range.isEmpty { try delete(range, of: unit.access) } }
            }
            let clause = { [container] (names: HistoryNames) in
                try Self.clause(descriptor.predicate, HistoryScope(names, unit, of: container), unit)
            }
            try unit.access.checkHistory(clause)
            return { try unit.access.deleteHistory(where: clause) }
        }
        var isDone = !tables.isEmpty
        for unit in container.units.compactMap(\.snapshots) where try unit.call({ try $0.deleteHistory(descriptor) }) {
            isDone = true
        }
        guard isDone else { throw Self.noHistory(T.self) }
        for delete in deletions { try Self.mapped(delete) }
    }

    private static func clause<T: HistoryTransaction>(
        _ predicate: Predicate<T>?, _ scope: HistoryScope, _ unit: TableUnit
    ) throws -> HistoryClause {
        var clause = HistoryClause()
        if let predicate {
            let text = try PredicateTranslator(unit.layout, history: scope).condition(predicate)
            (clause.condition, clause.arguments) = (text.sql, text.arguments)
        }
        clause.tokens = scope.tokens
        return clause
    }

    private func delete(_ range: HistoryRange, of access: StoreAccess) throws {
        if let before = range.before {
            try access.deleteHistory(before: before)
        } else if let through = range.through {
            guard through >= 0 else { return }
            try access.deleteHistory(
                through: MartletStore.HistoryToken(store: access.store.identifier, transaction: through))
        } else {
            try access.deleteHistory(through: nil)
        }
    }

    private static func noHistory<T>(_ type: T.Type) -> SwiftDataError {
        .invalidTransactionFetchRequest.because(
            """
            No store of the container keeps a history of \(T.self). Tables keep one of DefaultHistoryTransaction; a \
            custom store keeps one if it is HistoryProviding.
            """
        )
    }

    /// Nil for a property that is the same in all transactions of the store.
    private static func order<T: HistoryTransaction>(_ sort: SortDescriptor<T>, _ scope: HistoryScope) throws -> String?
    {
        let keyPath = sort.keyPath as AnyKeyPath?
        if keyPath == \DefaultHistoryTransaction.storeIdentifier { return nil }
        guard let keyPath, let column = scope.column(keyPath) else {
            throw SwiftDataError.unsupportedSortDescriptor.because(
                "Transactions are sorted by token, identifier, timestamp, author or process.")
        }
        let collation = sort.stringComparator.map { $0 == .lexical ? "" : " COLLATE NOCASE" } ?? ""
        return column + collation + (sort.order == .reverse ? " DESC" : "")
    }

    static func mapped<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as StoreError where error.code == .historyTokenExpired {
            throw SwiftDataError.historyTokenExpired.because(error.message)
        }
    }
}

extension TableUnit {
    /// The current entity of a row of a hierarchy.
    func entityName(_ table: TableLayout, _ row: Int64) -> String? {
        try? access.read { db in
            try String.fetchOne(
                db,
                sql: "SELECT \(TableLayout.type) FROM \(table.name.quotedName) WHERE \(TableLayout.key) = ?",
                arguments: [row])
        }
    }
}
