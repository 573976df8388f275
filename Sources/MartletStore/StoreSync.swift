/// Keeps a store in sync with others.
///
/// MartletAgent provides one over Kafka, `.kafka(...)`. Code that opens a store, for example a model container, accepts
/// any implementation.
public protocol StoreSync: Sendable {
    /// Starts to sync the store at a path. The store must exist, and its tables must be tracked.
    ///
    /// Returns at once. Connecting and catching up happen on separate threads, and continue until the session ends.
    /// - Throws: An error if the configuration can't be used.
    func start(store path: String) throws -> any StoreSyncSession
}

/// A running sync session. It ends when the last reference to it is released.
public protocol StoreSyncSession: AnyObject, Sendable {
    /// Stops the session. Returns when all work in flight is finished, or is safe to repeat at the next start.
    func stop() async
}
