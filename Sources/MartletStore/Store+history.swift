import Foundation
package import GRDB

extension Store {
    /// Fetches transactions from the history.
    ///
    /// Closes a transaction of what other programs committed first, so that the result includes it (not if the store
    /// was opened read-only). Costs O(log n) to find the start, plus the size of the result.
    /// - Throws: ``/MartletCore/StoreError`` with code `.historyTokenExpired` if a token belongs to another store or is
    ///   ahead of this one, or if the history after it has been deleted.
    public func fetchHistory(_ query: HistoryQuery = .init()) throws -> [HistoryTransaction] {
        if !configuration.isReadOnly { try closeForeignTransactions() }
        return try read { db in try fetchHistory(db, query) }
    }

    /// Fetches transactions for a caller that is already in an SQLite transaction. Changes of open transactions are not
    /// included.
    package func fetchHistory(
        _ db: Database, _ query: HistoryQuery, readsChanges: Bool = true,
        _ clause: (HistoryNames) throws -> HistoryClause = { _ in HistoryClause() }
    ) throws -> [HistoryTransaction] {
        let reader = try HistoryReader(db, store: identifier)
        return try reader.fetch(query, readsChanges, try clause(HistoryNames(catalog: reader.catalog)))
    }

    /// Fetches transactions as ``fetchHistory(_:)`` does, with the caller's own condition and order.
    ///
    /// - Parameters:
    ///   - readsChanges: False leaves ``HistoryTransaction/changes`` empty.
    ///   - clause: Called within the read transaction, with the names that its SQL may use.
    package func fetchHistory(
        _ query: HistoryQuery, readsChanges: Bool = true, _ clause: (HistoryNames) throws -> HistoryClause
    ) throws -> [HistoryTransaction] {
        if !configuration.isReadOnly { try closeForeignTransactions() }
        return try read { db in try fetchHistory(db, query, readsChanges: readsChanges, clause) }
    }

    /// Returns the transaction with this ID, or nil if there is none.
    public func transaction(_ id: Int64) throws -> HistoryTransaction? {
        var query = HistoryQuery()
        query.through = HistoryToken(store: identifier, transaction: id)
        query.newestFirst = true
        query.limit = 1
        do {
            return try fetchHistory(query).first { $0.id == id }
        } catch let error as StoreError where error.code == .historyTokenExpired {
            // It is later than the newest one, or was deleted.
            return nil
        }
    }

    /// Returns the token of the newest transaction, or nil if there is none. Closes a transaction of what other
    /// programs committed first.
    public func lastToken() throws -> HistoryToken? {
        if !configuration.isReadOnly { try closeForeignTransactions() }
        return try read { db in
            let newest = try HistoryToken.newestTransaction(db)
            return newest > 0 ? HistoryToken(store: identifier, transaction: newest) : nil
        }
    }
}

/// Builds transactions from rows of the log.
struct HistoryReader {
    let db: Database
    let store: UUID
    private let resolver: IdentityResolver
    private let log: LogReader

    init(_ db: Database, store: UUID) throws {
        self.db = db
        self.store = store
        let catalog = try Catalog.load(db)
        resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
        log = try LogReader(db, catalog: catalog)
    }

    var catalog: Catalog { resolver.catalog }

    func fetch(
        _ query: HistoryQuery, _ readsChanges: Bool = true, _ clause: HistoryClause = HistoryClause()
    ) throws -> [HistoryTransaction] {
        let marks = try marks(query, clause)
        let unstamped = unstamped(marks)
        return try marks.map { try transaction($0, readsChanges ? unstamped : nil) }
    }

    /// Returns the first transactions that match the query: so many that their values have about this size, and one at
    /// least. The others are not read.
    func fetch(_ query: HistoryQuery, bytes: Int) throws -> (transactions: [HistoryTransaction], areAll: Bool) {
        let marks = try marks(query, HistoryClause())
        let unstamped = unstamped(marks)
        var transactions: [HistoryTransaction] = []
        var left = bytes
        for mark in marks {
            guard left > 0 else { return (transactions, false) }
            let next = try transaction(mark, unstamped)
            left -= next.approximateBytes
            transactions.append(next)
        }
        return (transactions, true)
    }

    private func unstamped(_ marks: [Row]) -> UnstampedRows {
        UnstampedRows(db, resolver.catalog, through: marks.map { $0["id"] as Int64 }.max() ?? 0)
    }

    /// Finds the transactions that match the query, without their changes.
    private func marks(_ query: HistoryQuery, _ clause: HistoryClause) throws -> [Row] {
        for token in clause.tokens + [query.after, query.through].compactMap(\.self) {
            try token.checkIsAvailable(store, db)
        }
        var conditions = ["e = 0", HistoryClause.isShown]
        var arguments = StatementArguments()
        func require(_ condition: String, _ value: (any DatabaseValueConvertible)?) {
            conditions.append(condition)
            arguments += [value]
        }
        if let after = query.after { require("id > ?", after.transaction) }
        if let through = query.through { require("id <= ?", through.transaction) }
        switch query.author {
        case .equal(let author): require("c1 = ?", author)
        case .notEqual(let author): require("c1 IS NOT ?", author)
        case .absent: conditions.append("c1 IS NULL")
        case nil: break
        }
        if let since = query.since { require("t >= ?", Self.milliseconds(since)) }
        if let before = query.before { require("t < ?", Self.milliseconds(before)) }
        if !query.entities.isEmpty {
            let ids = try query.entities.map { name -> String in
                guard let entity = resolver.catalog[name] else {
                    throw StoreError(
                        .invalidArgument, "\(name) is not a tracked table.",
                        hint: "Tracked tables: \(resolver.catalog.entities.map(\.name).joined(separator: ", ")).")
                }
                return String(entity.id)
            }
            conditions.append(
                """
                EXISTS (SELECT 1 FROM \(InternalName.log) AS c WHERE c.id >= s.r AND c.id < s.id
                AND c.e IN (\(ids.joined(separator: ", "))))
                """)
        }
        if let condition = clause.condition {
            conditions.append("(\(condition))")
            arguments += StatementArguments(clause.arguments.map(\.databaseValue))
        }
        let order = clause.order + ["id \(query.newestFirst ? "DESC" : "ASC")"]
        let limit = query.limit.map { " LIMIT \(max(0, $0))" } ?? ""
        return try Row.fetchAll(
            db,
            sql: """
                SELECT id, r, t, c1, c2, c3, c4, c5, c6, c7, c8 FROM \(InternalName.log) AS s
                WHERE \(conditions.joined(separator: " AND ")) ORDER BY \(order.joined(separator: ", "))\(limit)
                """, arguments: arguments)
    }

    /// - Parameter unstamped: Nil to leave out the changes.
    private func transaction(_ row: Row, _ unstamped: UnstampedRows?) throws -> HistoryTransaction {
        let id: Int64 = row["id"]
        var changes: [HistoryChange] = []
        if let unstamped {
            try log.forEach(from: row["r"], to: id) { change in
                changes.append(try historyChange(change, unstamped))
            }
        }
        let node: Data? = row["c4"]
        let origin = node.flatMap { node in
            UUID(bytes: Array(node)).map {
                HistoryOrigin(
                    node: $0, name: row["c8"], sequence: row["c5"], author: row["c6"], timestamp: Self.date(row["c7"]))
            }
        }
        return HistoryTransaction(
            id: id, token: HistoryToken(store: store, transaction: id), author: row["c1"], context: row["c2"],
            process: row["c3"], timestamp: Self.date(row["t"]), origin: origin, changes: changes)
    }

    private func historyChange(_ change: LogChange, _ unstamped: UnstampedRows) throws -> HistoryChange {
        func named(_ values: [(column: EntityColumn, value: Value)]) -> [String: Value] {
            Dictionary(values.map { ($0.column.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        }
        var result = HistoryChange(
            id: change.id, entity: change.entity.name, kind: change.kind, identity: try identity(change, unstamped),
            row: change.row, values: [:], oldValues: [:], tombstone: [:], timestamp: Self.date(change.time))
        switch change.kind {
        case .insert: result.values = named(change.values)
        case .update:
            result.values = named(change.values.filter { change.isChanged($0.column) })
            let kept = change.before?.values.filter { old in result.values[old.column.name] != nil }
            result.oldValues = named(kept ?? [])
        case .delete: result.tombstone = named(change.values)
        }
        return result
    }

    private func identity(_ change: LogChange, _ unstamped: UnstampedRows) throws -> StableID? {
        if !change.entity.recordsNames {
            let values = change.entity.identityColumns.compactMap { change.value(of: $0) }
            guard values.count == change.entity.identityColumns.count else { return nil }
            return try resolver.identity(db, change.entity, localValues: values)
        }
        guard let row = change.row else { return nil }
        switch try unstamped.name(change.entity.id, row, at: change.id) {
        case .assigned(let identity): return identity
        case .stamped(let row): return try resolver.identity(db, change.entity, row: row)
        case nil: break
        }
        if let retired = try resolver.retired(db, change.entity, row: row, after: change.id, newest: false) {
            return retired
        }
        return try resolver.identity(db, change.entity, row: row)
    }

    static func milliseconds(_ date: Date) -> Int64 {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        // No number may be beyond the range, and NaN is none.
        return milliseconds.isNaN ? 0 : Int64(min(max(milliseconds, -0x1p48), 0x1p48))
    }

    /// Earlier versions stored the times of other nodes unchecked, and no calendar can represent all of those.
    static func date(_ milliseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(min(max(milliseconds, -(1 << 48)), 1 << 48)) / 1000)
    }
}

extension UUID {
    /// Creates a UUID from its 16 bytes. Nil for any other number of bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        self.init(uuid: bytes.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) })
    }
}
