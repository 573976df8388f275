/// Describes which models to fetch, and in which order.
public struct FetchDescriptor<T: PersistentModel>: @unchecked Sendable {  // safe because key paths are immutable
    /// The condition. Nil fetches all models.
    public var predicate: Predicate<T>?
    /// The order. If empty, models come in the order in which they were first saved.
    public var sortBy: [SortDescriptor<T>]
    /// The maximum number of models to fetch. Nil: no limit.
    public var fetchLimit: Int?
    /// The number of models to skip at the beginning.
    public var fetchOffset: Int?
    /// True, the default, fetches models with this context's unsaved changes; false, only what was saved.
    public var includePendingChanges = true
    /// The attributes to read. The others are read on first access to any of them, with one query per model. If empty,
    /// all are read.
    public var propertiesToFetch: [PartialKeyPath<T>] = []
    /// Relationships that are read together with the models, in one query each.
    public var relationshipKeyPathsForPrefetching: [PartialKeyPath<T>] = []

    public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}
