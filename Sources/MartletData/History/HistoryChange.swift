/// What happened to one model.
public enum HistoryChange: Sendable {
    case insert(any HistoryInsert)
    case update(any HistoryUpdate)
    case delete(any HistoryDelete)

    /// The model, which may be gone by now.
    public var changedPersistentIdentifier: PersistentIdentifier {
        switch self {
        case .insert(let change): change.changedPersistentIdentifier
        case .update(let change): change.changedPersistentIdentifier
        case .delete(let change): change.changedPersistentIdentifier
        }
    }

    /// Ascends with every change of the store. Nil for a change of a store of one's own that doesn't number them. Not
    /// in SwiftData.
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
    /// True where the change set this property.
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

/// A model was saved for the first time.
public struct DefaultHistoryInsert<Model: PersistentModel>: HistoryInsert {
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    /// Every value that the model was saved with: `insert.values[\.name]`. Not in SwiftData.
    public let values: HistoryValues<Model>
}

/// Properties of a model were changed.
public struct DefaultHistoryUpdate<Model: PersistentModel>: HistoryUpdate, @unchecked Sendable {
    // Safe because key paths are immutable.
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    public var updatedAttributes: [PartialKeyPath<Model>] { values.keyPaths }
    /// True where the change set this property.
    public func containsAttribute(_ attribute: PartialKeyPath<Model>) -> Bool { values.contains(attribute) }
    /// The new values of the properties that were changed: `update.values[\.name]`. Not in SwiftData.
    public let values: HistoryValues<Model>
    /// Their values before, where the history kept them: of models with an attribute that is preserved on deletion, and
    /// of those with subclasses. Empty for others. Not in SwiftData.
    public let old: HistoryValues<Model>
}

/// A model was deleted.
public struct DefaultHistoryDelete<Model: PersistentModel>: HistoryDelete {
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    public let tombstone: HistoryTombstone<Model>
    /// Everything that the history kept of the model, where ``DefaultHistoryUpdate/old`` would be kept too; else what
    /// identifies it. Not in SwiftData.
    public let old: HistoryValues<Model>
}
