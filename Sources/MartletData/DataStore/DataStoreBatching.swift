/// A store that deletes by a condition, without reading what it deletes.
public protocol DataStoreBatching: DataStore {
    /// - Throws: ``DataStoreError/unsupportedFeature`` or ``DataStoreError/preferInMemoryFilter`` to have the context
    ///   fetch the models and delete each.
    func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws
}

/// Which models to delete.
public struct DataStoreBatchDeleteRequest<T: PersistentModel>: Sendable {
    /// All models where there is none.
    public let predicate: Predicate<T>?
    public let includeSubclasses: Bool
    public let editingState: EditingState

    public init(predicate: Predicate<T>?, includeSubclasses: Bool, editingState: EditingState) {
        self.predicate = predicate
        self.includeSubclasses = includeSubclasses
        self.editingState = editingState
    }
}
