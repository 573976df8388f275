/// A store that deletes by a predicate, without reading the deleted models.
public protocol DataStoreBatching: DataStore {
    /// - Throws: ``DataStoreError/unsupportedFeature`` or ``DataStoreError/preferInMemoryFilter`` to let the context
    ///   fetch the models and delete each.
    func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws
}

/// Describes which models to delete.
public struct DataStoreBatchDeleteRequest<T: PersistentModel>: Sendable {
    /// The condition. Nil deletes all models.
    public let predicate: Predicate<T>?
    public let includeSubclasses: Bool
    public let editingState: EditingState

    public init(predicate: Predicate<T>?, includeSubclasses: Bool, editingState: EditingState) {
        self.predicate = predicate
        self.includeSubclasses = includeSubclasses
        self.editingState = editingState
    }
}
