import MartletStore

/// The part of the history that a predicate deletes, for predicates that cover it from its beginning up to a token or a
/// time.
struct HistoryRange {
    /// The last transaction to delete. Nil: no bound.
    private(set) var through: Int64?
    /// Transactions before this time are deleted. Nil: no bound.
    private(set) var before: Date?
    /// True if the predicate matches nothing.
    private(set) var isEmpty = false
    private let store: UUID
    /// The container's other stores. Conditions on their tokens don't apply to this one.
    private let others: Set<UUID>

    /// Nil for any other predicate.
    /// - Throws: ``SwiftDataError/historyTokenExpired`` for a token of another store.
    init?<T: HistoryTransaction>(_ predicate: Predicate<T>?, store: UUID, others: Set<UUID> = []) throws {
        self.store = store
        self.others = others
        do {
            if let predicate { try require(predicate.expression) }
        } catch is Unknown {
            return nil
        }
        guard through == nil || before == nil else { return nil }
    }

    /// Thrown for a part of a predicate that isn't a bound.
    fileprivate struct Unknown: Error {}

    fileprivate mutating func require(_ expression: any PredicateExpression) throws {
        guard let bound = expression as? any HistoryBound else { throw Unknown() }
        try bound.require(in: &self)
    }

    /// - Parameter isIncluded: whether the bound itself is deleted too.
    fileprivate mutating func require(_ path: AnyKeyPath, _ value: Any, isIncluded: Bool) throws {
        switch (path, value) {
        case (\DefaultHistoryTransaction.token, let token as DefaultHistoryToken):
            guard !others.contains(token.token.store) else { return isEmpty = true }
            guard token.token.store == store else {
                throw SwiftDataError.historyTokenExpired.because("The history token belongs to another store.")
            }
            bound(token.token.transaction - (isIncluded ? 0 : 1))
        case (\DefaultHistoryTransaction.transactionIdentifier, let id as Int64),
            (\DefaultHistoryTransaction.id, let id as Int64):
            bound(isIncluded ? id : id == .min ? id : id - 1)
        case (\DefaultHistoryTransaction.timestamp, let time as Date):
            // The history has millisecond resolution.
            let time = isIncluded ? time.addingTimeInterval(0.001) : time
            before = before.map { min($0, time) } ?? time
        default: throw Unknown()
        }
    }

    private mutating func bound(_ id: Int64) { through = through.map { min($0, id) } ?? id }

    /// Handles `storeIdentifier == value`.
    fileprivate mutating func require(_ left: any PredicateExpression, equals right: any PredicateExpression) throws {
        let sides = [(left, right), (right, left)].lazy.compactMap { path, value in
            (path as? any BoundPath).flatMap { path in (value as? any BoundValue).map { (path, $0.anyValue) } }
        }
        guard let (path, value) = sides.first, path.isOfVariable, let identifier = value as? String,
            path.anyKeyPath == \DefaultHistoryTransaction.storeIdentifier
        else { throw Unknown() }
        require(identifier == store.uuidString)
    }

    fileprivate mutating func require(_ isTrue: Bool) { if !isTrue { isEmpty = true } }
}

/// A part of a predicate that bounds the deletion.
private protocol HistoryBound {
    func require(in range: inout HistoryRange) throws
}

private protocol BoundPath {
    var anyKeyPath: AnyKeyPath { get }
    var isOfVariable: Bool { get }
}

extension PredicateExpressions.KeyPath: BoundPath {
    fileprivate var anyKeyPath: AnyKeyPath { keyPath }
    fileprivate var isOfVariable: Bool { root is any VariableExpression }
}

private protocol VariableExpression {}
extension PredicateExpressions.Variable: VariableExpression {}

private protocol BoundValue {
    var anyValue: Any { get }
}

extension PredicateExpressions.Value: BoundValue {
    fileprivate var anyValue: Any { value }
}

extension PredicateExpressions.Value: HistoryBound {
    fileprivate func require(in range: inout HistoryRange) throws {
        guard let value = value as? Bool else { throw HistoryRange.Unknown() }
        range.require(value)
    }
}

extension PredicateExpressions.Conjunction: HistoryBound {
    fileprivate func require(in range: inout HistoryRange) throws {
        try range.require(lhs)
        try range.require(rhs)
    }
}

extension PredicateExpressions.Equal: HistoryBound {
    fileprivate func require(in range: inout HistoryRange) throws { try range.require(lhs, equals: rhs) }
}

extension PredicateExpressions.Comparison: HistoryBound {
    fileprivate func require(in range: inout HistoryRange) throws {
        let path: any BoundPath
        let value: Any
        let isIncluded: Bool
        switch (lhs, rhs, op) {
        case (let left as any BoundPath, let right as any BoundValue, .lessThan):
            (path, value, isIncluded) = (left, right.anyValue, false)
        case (let left as any BoundPath, let right as any BoundValue, .lessThanOrEqual):
            (path, value, isIncluded) = (left, right.anyValue, true)
        case (let left as any BoundValue, let right as any BoundPath, .greaterThan):
            (path, value, isIncluded) = (right, left.anyValue, false)
        case (let left as any BoundValue, let right as any BoundPath, .greaterThanOrEqual):
            (path, value, isIncluded) = (right, left.anyValue, true)
        default: throw HistoryRange.Unknown()
        }
        guard path.isOfVariable else { throw HistoryRange.Unknown() }
        try range.require(path.anyKeyPath, value, isIncluded: isIncluded)
    }
}

extension NestedPredicate: HistoryBound {
    fileprivate func require(in range: inout HistoryRange) throws { try range.require(predicate.expression) }
}
