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
    /// The error that ended the session by itself, and that only a person can remove: the configuration can't be used,
    /// or the file is damaged. Nil while the session runs, and if it was stopped. Callable from any thread.
    var failure: (any Error)? { get }

    /// Stops the session. Returns when all work in flight is finished, or is safe to repeat at the next start.
    func stop() async
}

extension StoreSyncSession {
    public var failure: (any Error)? { nil }
}
