/// The errors that a custom store may throw to the context.
public enum DataStoreError: Error, Hashable, Sendable {
    /// The store can't make sense of the predicate.
    case invalidPredicate
    /// The store leaves filtering to the context, which requests all models and evaluates the predicate in memory.
    case preferInMemoryFilter
    /// The store leaves sorting to the context.
    case preferInMemorySort
    case unsupportedFeature
}
