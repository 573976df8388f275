/// What to fetch, and in which order.
public struct FetchDescriptor<T: PersistentModel>: @unchecked Sendable {  // safe because key paths are immutable
    /// All models where there is none.
    public var predicate: Predicate<T>?
    /// In the order in which they were first saved where it is empty.
    public var sortBy: [SortDescriptor<T>]
    /// The most models to fetch. Absent: all.
    public var fetchLimit: Int?
    /// How many models to leave out at the beginning.
    public var fetchOffset: Int?
    /// True, the default, for models as this context has them; false for what was saved.
    public var includePendingChanges = true
    /// The attributes to read. Others are read when the first of them is looked at, one query for each model. Empty:
    /// all.
    public var propertiesToFetch: [PartialKeyPath<T>] = []
    /// Relationships that are read with the models, in one query each.
    public var relationshipKeyPathsForPrefetching: [PartialKeyPath<T>] = []

    public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}
