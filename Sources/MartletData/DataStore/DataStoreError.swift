/// What a store of one's own may answer.
public enum DataStoreError: Error, Hashable, Sendable {
    /// The predicate makes no sense to the store.
    case invalidPredicate
    /// The context is to filter: it asks for all models, and evaluates the predicate in memory.
    case preferInMemoryFilter
    /// The context is to sort.
    case preferInMemorySort
    case unsupportedFeature
}
