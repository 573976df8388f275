/// A custom store, which may store models anywhere: in a file, a service, another database.
///
/// A container creates it from its configuration, and contexts read and write snapshots of models through it. A
/// container calls it from one thread at a time. A store that keeps files or sockets open must decide how to behave
/// when two containers use it.
public protocol DataStore<Configuration, Snapshot>: AnyObject {
    associatedtype Configuration: DataStoreConfiguration where Self == Self.Configuration.Store
    associatedtype Snapshot: DataStoreSnapshot

    /// Identifies the store, with the same value at each launch. The identifiers of its models contain it.
    var identifier: String { get }
    /// The models that it stores.
    var schema: Schema { get }
    var configuration: Configuration { get }

    /// Creates the store. The container makes sure that the configuration has a schema.
    init(_ configuration: Configuration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws

    /// Returns the saved models that the request describes, in its order.
    ///
    /// The context limits the number with `fetchLimit`, and never sets `fetchOffset`. It ignores snapshots of models
    /// other than the requested one.
    /// - Throws: ``DataStoreError/preferInMemoryFilter`` or ``DataStoreError/preferInMemorySort`` to leave that to the
    ///   context: it requests all models again, and filters or sorts them.
    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, Snapshot>
    func fetchCount<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int
    func fetchIdentifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier]

    /// Writes the changes that a context saves, all or nothing, and assigns permanent identifiers to new models.
    func save(_ request: DataStoreSaveChangesRequest<Snapshot>) throws -> DataStoreSaveChangesResult<Snapshot>
    /// Deletes every model.
    func erase() throws

    /// Called when a context starts to use the store.
    func initializeState(for editingState: EditingState)
    /// Called when the context is gone.
    func invalidateState(for editingState: EditingState)
    /// Returns snapshots that the store has cached. It may omit any: the context fetches those.
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
