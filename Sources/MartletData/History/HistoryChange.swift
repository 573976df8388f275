/// A change to one model.
public enum HistoryChange: Sendable {
    case insert(any HistoryInsert)
    case update(any HistoryUpdate)
    case delete(any HistoryDelete)

    /// The identifier of the model, which may be deleted by now.
    public var changedPersistentIdentifier: PersistentIdentifier {
        switch self {
        case .insert(let change): change.changedPersistentIdentifier
        case .update(let change): change.changedPersistentIdentifier
        case .delete(let change): change.changedPersistentIdentifier
        }
    }

    /// The number of the change, which increases with every change of the store. Nil for a change of a custom store
    /// that doesn't number them. Not in SwiftData.
    public var changeIdentifier: Int64? {
        switch self {
        case .insert(let change): change.changeIdentifier as? Int64
        case .update(let change): change.changeIdentifier as? Int64
        case .delete(let change): change.changeIdentifier as? Int64
        }
    }
}

public protocol HistoryInsert<Model>: Sendable {
    associatedtype Model: PersistentModel
    associatedtype ChangeIdentifier: Comparable, Hashable, Sendable
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
    var changedPersistentIdentifier: PersistentIdentifier { get }
    var changeIdentifier: ChangeIdentifier { get }
    var transactionIdentifier: TransactionIdentifier { get }
}

public protocol HistoryUpdate<Model>: Sendable {
    associatedtype Model: PersistentModel
    associatedtype ChangeIdentifier: Comparable, Hashable, Sendable
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
    typealias PropertyUpdate = PartialKeyPath<Model>
    var changedPersistentIdentifier: PersistentIdentifier { get }
    var changeIdentifier: ChangeIdentifier { get }
    var transactionIdentifier: TransactionIdentifier { get }
    /// The properties that were changed.
    var updatedAttributes: [PropertyUpdate] { get }
}

extension HistoryUpdate {
    /// Returns whether the change set this property.
    public func containsAttribute(_ attribute: PartialKeyPath<Model>) -> Bool { updatedAttributes.contains(attribute) }
}

public protocol HistoryDelete<Model>: Sendable {
    associatedtype Model: PersistentModel
    associatedtype ChangeIdentifier: Comparable, Hashable, Sendable
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
    var changedPersistentIdentifier: PersistentIdentifier { get }
    var changeIdentifier: ChangeIdentifier { get }
    var transactionIdentifier: TransactionIdentifier { get }
    var tombstone: HistoryTombstone<Model> { get }
}

/// The insertion of a model that was saved for the first time.
public struct DefaultHistoryInsert<Model: PersistentModel>: HistoryInsert {
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    /// Every value with which the model was saved: `insert.values[\.name]`. Not in SwiftData.
    public let values: HistoryValues<Model>
}

/// A change to properties of a model.
public struct DefaultHistoryUpdate<Model: PersistentModel>: HistoryUpdate, @unchecked Sendable {
    // Safe because key paths are immutable.
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    public var updatedAttributes: [PartialKeyPath<Model>] { values.keyPaths }
    /// Returns whether the change set this property.
    public func containsAttribute(_ attribute: PartialKeyPath<Model>) -> Bool { values.contains(attribute) }
    /// The new values of the properties that were changed: `update.values[\.name]`. Not in SwiftData.
    public let values: HistoryValues<Model>
    /// Their previous values, if the history recorded them: for models with an attribute that is preserved on deletion,
    /// and for models with subclasses. Empty for others. Not in SwiftData.
    public let old: HistoryValues<Model>
}

/// The deletion of a model.
public struct DefaultHistoryDelete<Model: PersistentModel>: HistoryDelete {
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    public let tombstone: HistoryTombstone<Model>
    /// All values that the history recorded of the model, for models whose ``DefaultHistoryUpdate/old`` is recorded
    /// too; for others, the values that identify it. Not in SwiftData.
    public let old: HistoryValues<Model>
}
