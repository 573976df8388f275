/// A store of one's own, which keeps models in whatever way it likes: a file, a service, another database.
///
/// A container makes it of its configuration, and contexts read and write snapshots of models through it. A container
/// calls it from one thread at a time. A store that keeps files or sockets open must know what it does when it is used
/// by two containers.
public protocol DataStore<Configuration, Snapshot>: AnyObject {
    associatedtype Configuration: DataStoreConfiguration where Self == Self.Configuration.Store
    associatedtype Snapshot: DataStoreSnapshot

    /// Names the store, the same at each launch. What the identifiers of its models carry.
    var identifier: String { get }
    /// The models that it keeps.
    var schema: Schema { get }
    var configuration: Configuration { get }

    /// The configuration has a schema: the container sees to that.
    init(_ configuration: Configuration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws

    /// What the request describes, in its order, as it was saved.
    ///
    /// The context asks for as many as it needs with `fetchLimit`, and never with `fetchOffset`. Snapshots of other
    /// models than the one asked for are left out.
    /// - Throws: ``DataStoreError/preferInMemoryFilter`` or ``DataStoreError/preferInMemorySort`` to have the context
    ///   do it: it asks again for all models, and filters or sorts those.
    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, Snapshot>
    func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int
    func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier]

    /// Writes what a context saves, all of it or nothing, and gives new models their lasting identifiers.
    func save(_ request: DataStoreSaveChangesRequest<Snapshot>) throws -> DataStoreSaveChangesResult<Snapshot>
    /// Deletes every model.
    func erase() throws

    /// A context begins to use the store.
    func initializeState(for editingState: EditingState)
    /// The context is gone.
    func invalidateState(for editingState: EditingState)
    /// Snapshots that the store has at hand. May leave out any: those are fetched.
    func cachedSnapshots(for persistentIdentifiers: [PersistentIdentifier], editingState: EditingState) throws
        -> [PersistentIdentifier: Snapshot]
}

extension DataStore {
    public func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        try fetchIdentifiers(request).count
    }

    public func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws
        -> [PersistentIdentifier]
    {
        let names = Set(schema.models.filter { $0 is T.Type }.map { Schema.entityName(for: $0) })
        return try fetch(request).fetchedSnapshots.map(\.persistentIdentifier).filter { names.contains($0.entityName) }
    }

    /// - Throws: ``DataStoreError/unsupportedFeature``.
    public func erase() throws { throw DataStoreError.unsupportedFeature }

    public func initializeState(for editingState: EditingState) {}
    public func invalidateState(for editingState: EditingState) {}

    public func cachedSnapshots(for persistentIdentifiers: [PersistentIdentifier], editingState: EditingState) throws
        -> [PersistentIdentifier: Snapshot]
    {
        [:]
    }
}
