import MartletStore

/// A predicate over transactions, as a query of the store's history.
///
/// The history can be asked for a conjunction of: a range of tokens, an author, a range of time, entities. What doesn't fit is refused.
struct HistoryFilter {
    let layout: SchemaLayout
    let store: UUID
    /// The container's other stores. Their tokens say nothing of this one.
    let others: Set<UUID>
    var query = HistoryQuery()
    /// Entities that share their table with others: of these, transactions are looked through after they were read.
    var entities: Set<String>?
    /// True where nothing can match.
    var isEmpty = false
    private var constants: [PredicateExpressions.VariableID: Bool] = [:]

    init(layout: SchemaLayout, store: UUID, others: Set<UUID> = []) {
        self.layout = layout
        self.store = store
        self.others = others
    }

    mutating func require(_ expression: any PredicateExpression) throws {
        guard let condition = expression as? any HistoryCondition else { throw Self.unsupported }
        try condition.require(in: &self)
    }

    static var unsupported: SwiftDataError {
        .unsupportedPredicate.because(
            "The history can be asked for transactions after or before a token, of an author, of a time, and that change certain entities, all joined by &&."
        )
    }

    mutating func require(_ token: DefaultHistoryToken, _ op: Comparison) throws {
        guard !others.contains(token.token.store) else {
            isEmpty = true
            return
        }
        func moved(_ by: Int64) -> MartletStore.HistoryToken {
            MartletStore.HistoryToken(store: token.token.store, transaction: max(0, token.token.transaction + by))
        }
        func later(_ a: MartletStore.HistoryToken?, _ b: MartletStore.HistoryToken) -> MartletStore.HistoryToken {
            a.map { max($0, b) } ?? b
        }
        func earlier(_ a: MartletStore.HistoryToken?, _ b: MartletStore.HistoryToken) -> MartletStore.HistoryToken {
            a.map { min($0, b) } ?? b
        }
        switch op {
        case .greater: query.after = later(query.after, token.token)
        case .greaterOrEqual: query.after = later(query.after, moved(-1))
        case .less: query.through = earlier(query.through, moved(-1))
        case .lessOrEqual: query.through = earlier(query.through, token.token)
        case .equal:
            query.after = later(query.after, moved(-1))
            query.through = earlier(query.through, token.token)
        }
    }

    mutating func require(author filter: HistoryQuery.AuthorFilter) throws {
        guard query.author == nil || query.author == filter else { throw Self.unsupported }
        query.author = filter
    }

    mutating func require(time: Date, _ op: Comparison) throws {
        // The history counts milliseconds.
        let next = time.addingTimeInterval(0.001)
        switch op {
        case .greaterOrEqual: query.since = query.since.map { max($0, time) } ?? time
        case .greater: query.since = query.since.map { max($0, next) } ?? next
        case .less: query.before = query.before.map { min($0, time) } ?? time
        case .lessOrEqual: query.before = query.before.map { min($0, next) } ?? next
        case .equal: throw Self.unsupported
        }
    }

    mutating func require(entities names: [String]) throws {
        guard query.entities.isEmpty, entities == nil else { throw Self.unsupported }
        let known = names.compactMap { layout[named: $0] }
        guard !known.isEmpty else {
            isEmpty = true
            return
        }
        query.entities = Array(Set(known.map(\.table.name))).sorted()
        if known.contains(where: { $0.table.hasTypeColumn }) { entities = Set(names) }
    }

    enum Comparison {
        case less, lessOrEqual, greater, greaterOrEqual, equal

        var flipped: Comparison {
            switch self {
            case .less: .greater
            case .lessOrEqual: .greaterOrEqual
            case .greater: .less
            case .greaterOrEqual: .lessOrEqual
            case .equal: .equal
            }
        }
    }
}

/// A part of a predicate that the history can be asked for.
protocol HistoryCondition {
    func require(in filter: inout HistoryFilter) throws
}

/// A value that depends on no transaction.
private protocol ConstantExpression {
    var anyConstant: Any { get }
}

extension PredicateExpressions.Value: ConstantExpression {
    fileprivate var anyConstant: Any { value }
}

private protocol PathExpression {
    var anyKeyPath: AnyKeyPath { get }
    var anyRoot: any PredicateExpression { get }
}

extension PredicateExpressions.KeyPath: PathExpression {
    fileprivate var anyKeyPath: AnyKeyPath { keyPath }
    fileprivate var anyRoot: any PredicateExpression { root }
}

extension HistoryFilter {
    /// `path op constant`, whichever side they stand on.
    fileprivate mutating func compare(
        _ left: any PredicateExpression, _ right: any PredicateExpression, _ op: Comparison, isNegated: Bool = false
    ) throws {
        if let path = left as? any PathExpression, let value = constant(right) {
            try compare(path.anyKeyPath, value, op, isNegated)
        } else if let path = right as? any PathExpression, let value = constant(left) {
            try compare(path.anyKeyPath, value, op.flipped, isNegated)
        } else {
            throw Self.unsupported
        }
    }

    private func constant(_ expression: any PredicateExpression) -> Any?? {
        if let value = expression as? any ConstantExpression {
            if let optional = value.anyConstant as? any AnyOptional { return .some(optional.anyValue) }
            return .some(value.anyConstant)
        }
        return expression is any NilExpression ? .some(nil) : nil
    }

    private mutating func compare(_ path: AnyKeyPath, _ value: Any?, _ op: Comparison, _ isNegated: Bool) throws {
        switch path {
        case \DefaultHistoryTransaction.author where op == .equal:
            guard let author = value as? String else {
                guard value == nil, !isNegated else { throw Self.unsupported }
                return try require(author: .absent)
            }
            try require(author: isNegated ? .notEqual(author) : .equal(author))
        case \DefaultHistoryTransaction.storeIdentifier where op == .equal:
            guard let identifier = value as? String else { throw Self.unsupported }
            if (identifier == store.uuidString) == isNegated { isEmpty = true }
        case _ where isNegated: throw Self.unsupported
        case \DefaultHistoryTransaction.token:
            guard let token = value as? DefaultHistoryToken else { throw Self.unsupported }
            try require(token, op)
        case \DefaultHistoryTransaction.transactionIdentifier:
            guard let id = value as? Int64 else { throw Self.unsupported }
            try require(DefaultHistoryToken(MartletStore.HistoryToken(store: store, transaction: id)), op)
        case \DefaultHistoryTransaction.timestamp:
            guard let time = value as? Date else { throw Self.unsupported }
            try require(time: time, op)
        default: throw Self.unsupported
        }
    }

    /// The names in a test of `change.changedPersistentIdentifier.entityName`.
    fileprivate func entityNames(_ test: any PredicateExpression) throws -> [String] {
        guard let names = (test as? any EntityTest)?.names else { throw Self.unsupported }
        return names
    }

    fileprivate static func isEntityName(_ expression: any PredicateExpression) -> Bool {
        guard let name = expression as? any PathExpression,
            name.anyKeyPath == \PersistentIdentifier.entityName as AnyKeyPath,
            let identifier = name.anyRoot as? any PathExpression
        else { return false }
        return identifier.anyKeyPath == \HistoryChange.changedPersistentIdentifier as AnyKeyPath
    }
}

private protocol NilExpression {}
extension PredicateExpressions.NilLiteral: NilExpression {}

private protocol EntityTest {
    var names: [String]? { get }
}

extension PredicateExpressions.SequenceContains: EntityTest {
    fileprivate var names: [String]? {
        guard HistoryFilter.isEntityName(element), let list = (sequence as? any ConstantExpression)?.anyConstant else {
            return nil
        }
        return (list as? [String]) ?? (list as? Set<String>).map(Array.init)
    }
}

extension PredicateExpressions.Equal: EntityTest {
    fileprivate var names: [String]? {
        if HistoryFilter.isEntityName(lhs), let name = (rhs as? any ConstantExpression)?.anyConstant as? String {
            return [name]
        }
        if HistoryFilter.isEntityName(rhs), let name = (lhs as? any ConstantExpression)?.anyConstant as? String {
            return [name]
        }
        return nil
    }
}

extension PredicateExpressions.Value: HistoryCondition {
    func require(in filter: inout HistoryFilter) throws {
        guard let value = value as? Bool else { throw HistoryFilter.unsupported }
        if !value { filter.isEmpty = true }
    }
}

extension PredicateExpressions.Conjunction: HistoryCondition {
    func require(in filter: inout HistoryFilter) throws {
        try filter.require(lhs)
        try filter.require(rhs)
    }
}

extension PredicateExpressions.Comparison: HistoryCondition {
    func require(in filter: inout HistoryFilter) throws {
        let comparison: HistoryFilter.Comparison =
            switch op {
            case .lessThan: .less
            case .lessThanOrEqual: .lessOrEqual
            case .greaterThan: .greater
            case .greaterThanOrEqual: .greaterOrEqual
            @unknown default: throw HistoryFilter.unsupported
            }
        try filter.compare(lhs, rhs, comparison)
    }
}

extension PredicateExpressions.Equal: HistoryCondition {
    func require(in filter: inout HistoryFilter) throws { try filter.compare(lhs, rhs, .equal) }
}

extension PredicateExpressions.NotEqual: HistoryCondition {
    func require(in filter: inout HistoryFilter) throws { try filter.compare(lhs, rhs, .equal, isNegated: true) }
}

extension PredicateExpressions.SequenceContainsWhere: HistoryCondition {
    func require(in filter: inout HistoryFilter) throws {
        guard let path = sequence as? any PathExpression,
            path.anyKeyPath == \DefaultHistoryTransaction.changes as AnyKeyPath
        else { throw HistoryFilter.unsupported }
        try filter.require(entities: try filter.entityNames(test))
    }
}

extension NestedPredicate: HistoryCondition {
    func require(in filter: inout HistoryFilter) throws { try filter.require(predicate.expression) }
}
