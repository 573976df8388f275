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

    /// Ascends with every change of the store.
    public var changeIdentifier: any Comparable & Hashable & Sendable {
        switch self {
        case .insert(let change): change.changeIdentifier
        case .update(let change): change.changeIdentifier
        case .delete(let change): change.changeIdentifier
        }
    }
}

/// What all changes have.
public protocol HistoryModelChange<Model>: Sendable {
    associatedtype Model: PersistentModel
    associatedtype ChangeIdentifier: Comparable & Hashable & Sendable
    associatedtype TransactionIdentifier: Comparable & Hashable & Sendable
    var changedPersistentIdentifier: PersistentIdentifier { get }
    var changeIdentifier: ChangeIdentifier { get }
    var transactionIdentifier: TransactionIdentifier { get }
}

public protocol HistoryInsert<Model>: HistoryModelChange {}

public protocol HistoryUpdate<Model>: HistoryModelChange {
    /// The properties that were changed.
    var updatedAttributes: [PartialKeyPath<Model>] { get }
}

public protocol HistoryDelete<Model>: HistoryModelChange {
    var tombstone: HistoryTombstone<Model> { get }
}

/// A model was saved for the first time.
public struct DefaultHistoryInsert<Model: PersistentModel>: HistoryInsert {
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
}

/// Properties of a model were changed.
public struct DefaultHistoryUpdate<Model: PersistentModel>: HistoryUpdate, @unchecked Sendable {
    // Safe because key paths are immutable.
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    public let updatedAttributes: [PartialKeyPath<Model>]
}

/// A model was deleted.
public struct DefaultHistoryDelete<Model: PersistentModel>: HistoryDelete {
    public let changedPersistentIdentifier: PersistentIdentifier
    public let changeIdentifier: Int64
    public let transactionIdentifier: Int64
    public let tombstone: HistoryTombstone<Model>
}
