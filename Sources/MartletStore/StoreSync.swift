/// Keeps a store in step with others.
///
/// MartletAgent has one over Kafka, `.kafka(...)`. Whoever opens a store, a container of models for example, takes any.
public protocol StoreSync: Sendable {
    /// Begins to sync the store at a path, which is there and has its tables tracked.
    ///
    /// Returns at once: connecting and catching up happen on threads of their own, and go on until the session ends.
    /// - Throws: where the configuration can't be used.
    func start(store path: String) throws -> any StoreSyncSession
}

/// Sync that is under way. Ends when the last reference to it goes.
public protocol StoreSyncSession: AnyObject, Sendable {
    /// Asks it to end, and returns when what was in flight is finished or will be done again at the next start.
    func stop() async
}
