import MartletStore

/// The SQL for properties that a predicate over transactions may use.
final class HistoryScope {
    let names: HistoryNames
    private let layout: SchemaLayout
    private let store: UUID
    /// The container's other stores. Their tokens don't apply to this one.
    private let others: Set<UUID>
    let storeIdentifier: String
    /// The tokens that occur in the condition.
    private(set) var tokens: [MartletStore.HistoryToken] = []

    init(_ names: HistoryNames, _ unit: TableUnit, of container: ModelContainer) {
        self.names = names
        layout = unit.layout
        store = unit.store.identifier
        others = Set(container.units.compactMap(\.tables?.store.identifier)).subtracting([store])
        storeIdentifier = unit.identifier
    }

    /// The changes of the transaction that its `changes` contains.
    func changes(as alias: String) -> String { names.changes(of: layout.tables.map(\.name), as: alias) }

    /// The name of the changed model's entity, determined in the same way as by ``HistoryReader``.
    func entityName(_ alias: String) -> String {
        names.byTable(
            alias,
            layout.tables.map { table in
                let base = table.name.quotedText
                guard table.hasTypeColumn else { return (table.name, base) }
                let recorded = names.recorded(alias, table: table.name, column: TableLayout.type)
                let today = """
                    SELECT \(TableLayout.type) FROM \(table.name.quotedName)
                    WHERE \(TableLayout.key) = \(names.row(alias))
                    """
                return (table.name, "coalesce(\(recorded), (\(today)), \(base))")
            })
    }

    /// An identifier as a text that is unique to it.
    func identifier(_ alias: String) -> String { "(\(entityName(alias)) || '/' || \(names.row(alias)))" }

    func stored(_ identifier: PersistentIdentifier) -> Value {
        guard identifier.storeIdentifier == storeIdentifier, let row = identifier.row else {
            return .text("?\(identifier)")
        }
        return .text("\(identifier.entityName)/\(row)")
    }

    /// - Throws: ``SwiftDataError/historyTokenExpired`` for a token of another store.
    func stored(_ token: DefaultHistoryToken) throws -> Value {
        // No transaction of this store is before it, after it, or at it.
        guard !others.contains(token.token.store) else { return .null }
        guard token.token.store == store else {
            throw SwiftDataError.historyTokenExpired.because("The history token belongs to another store.")
        }
        tokens.append(token.token)
        return .integer(token.token.transaction)
    }

    // MARK: Columns of the transaction

    /// Computed bit by bit like the transaction's Date: whole milliseconds that were converted to Date's own epoch and
    /// back.
    private var seconds: String {
        let epoch = "\(Date.timeIntervalBetween1970AndReferenceDate)"
        return "(\(names.milliseconds) / 1000.0 - \(epoch) + \(epoch))"
    }

    func column(_ keyPath: AnyKeyPath) -> String? {
        switch keyPath {
        case \DefaultHistoryTransaction.author: names.author
        case \DefaultHistoryTransaction.timestamp: seconds
        case \DefaultHistoryTransaction.token, \DefaultHistoryTransaction.transactionIdentifier,
            \DefaultHistoryTransaction.id:
            names.id
        case \DefaultHistoryTransaction.processIdentifier: "coalesce(\(names.process), '')"
        case \DefaultHistoryTransaction.bundleIdentifier:
            """
            CASE WHEN instr(\(names.process), '[') > 0 THEN substr(\(names.process), 1, instr(\(names.process), '[') \
            - 1) ELSE coalesce(\(names.process), '') END
            """
        default: nil
        }
    }
}

/// A part of the history in a predicate.
enum HistoryTerm {
    case transaction
    /// The changes of the transaction that match all filters.
    case changes([(PredicateTranslator, HistoryTerm) throws -> SQLText])
    case change(alias: String)
    /// The identifier of a change's model.
    case identifier(alias: String)
}

extension PredicateTranslator {
    /// Builds `SELECT ... FROM` the changes `WHERE` all filters and the test match.
    func select(
        _ what: String, changes filters: [(PredicateTranslator, HistoryTerm) throws -> SQLText],
        where test: ((HistoryTerm) throws -> SQLText)? = nil
    ) throws -> SQLText {
        let scope = try historyScope
        let alias = counter.next()
        var conditions = try filters.map { try $0(self, .change(alias: alias)) }
        if let test { conditions.append(try test(.change(alias: alias))) }
        let source = SQLText("SELECT \(what) \(scope.changes(as: alias))")
        guard !conditions.isEmpty else { return source }
        return SQLText.format("@ AND @", source, .joined(conditions.map { .format("(@)", $0) }, " AND "))
    }

    /// The SQL for a property of a part of the history.
    func property(_ keyPath: AnyKeyPath, of term: HistoryTerm) throws -> SQLTerm? {
        let scope = try historyScope
        switch term {
        case .transaction:
            if keyPath == \DefaultHistoryTransaction.changes { return .history(.changes([])) }
            if keyPath == \DefaultHistoryTransaction.storeIdentifier { return .constant(scope.storeIdentifier) }
            return scope.column(keyPath).map { .scalar(SQLText($0), isColumn: true) }
        case .change(let alias):
            switch keyPath {
            case \HistoryChange.changedPersistentIdentifier: return .history(.identifier(alias: alias))
            case \HistoryChange.changeIdentifier: return .scalar(SQLText(scope.names.change(alias)), isColumn: true)
            default: return nil
            }
        case .identifier(let alias):
            switch keyPath {
            case \PersistentIdentifier.entityName: return .scalar(SQLText(scope.entityName(alias)), isColumn: true)
            case \PersistentIdentifier.storeIdentifier: return .constant(scope.storeIdentifier)
            case \PersistentIdentifier.id: return .history(term)
            default: return nil
            }
        case .changes: return nil
        }
    }
}
