import GRDB
public import MartletStore

/// A store of models, and its schema. May be used from any thread.
public final class ModelContainer: Sendable {
    public let schema: Schema
    public let configurations: Set<ModelConfiguration>
    public let migrationPlan: (any SchemaMigrationPlan.Type)?
    /// The store that keeps the models: for history, cursors, and syncing with MartletSync.
    public let store: Store
    let layout: SchemaLayout
    let storeIdentifier: String
    // Safe because it is only used on the connection's queue.
    nonisolated(unsafe) let statements = StatementCache()

    /// The context of the main actor, made when it is first asked for.
    @MainActor public var mainContext: ModelContext {
        MainContexts.context(of: self)
    }

    /// Opens the store, and makes it where there is none. Its tables are tracked from then on.
    ///
    /// Blocks until it is open, and migrated where a plan says how.
    /// - Throws: ``SwiftDataError`` with `.invalidSchema`, `.incompatibleStore`, `.missingMigration`, `.configuration`, or
    ///   `StoreError` where the file can't be opened.
    public init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: [ModelConfiguration] = []
    ) throws {
        guard configurations.count <= 1 else {
            throw SwiftDataError.configuration.because("Several configurations in one container aren't there yet.")
        }
        let configuration = configurations.first ?? ModelConfiguration(schema: schema)
        self.schema = schema
        self.migrationPlan = migrationPlan
        self.configurations = [configuration]
        layout = try SchemaLayout(schema)
        store = try Self.open(configuration)
        storeIdentifier = store.identifier.uuidString
        store.database.inDatabase { TextFunctions.add(to: $0) }
        try StoreOpener(store: store, schema: schema, layout: layout, plan: migrationPlan).run(
            allowsChanges: configuration.allowsSave)
    }

    public convenience init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil, configurations: ModelConfiguration...
    ) throws {
        try self.init(for: schema, migrationPlan: migrationPlan, configurations: configurations)
    }

    public convenience init(
        for models: any PersistentModel.Type..., migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: ModelConfiguration...
    ) throws {
        try self.init(for: Schema(models), migrationPlan: migrationPlan, configurations: configurations)
    }

    private static func open(_ configuration: ModelConfiguration) throws -> Store {
        if configuration.isStoredInMemoryOnly { return try Store.create(path: ":memory:") }
        var options = StoreConfiguration()
        options.isReadOnly = !configuration.allowsSave
        if options.isReadOnly { return try Store(path: configuration.url.path, configuration: options) }
        try FileManager.default.createDirectory(
            at: configuration.url.deletingLastPathComponent(), withIntermediateDirectories: true)
        return try Store.create(path: configuration.url.path, configuration: options)
    }

    /// Deletes every model of the schema, as one transaction of the history. Contexts keep what they have in memory.
    public func deleteAllData() throws {
        try store.write { db in
            for join in layout.joins { try db.execute(sql: "DELETE FROM \(join.name.quotedName)") }
            for table in layout.tables { try db.execute(sql: "DELETE FROM \(table.name.quotedName)") }
        }
    }

    deinit {
        // SQLite closes no connection that has compiled statements.
        store.database.inDatabase { _ in statements.removeAll() }
    }
}

/// The main contexts. A context holds its container, so that one which was asked for lives as long as the process.
@MainActor
private enum MainContexts {
    private static var contexts: [ObjectIdentifier: ModelContext] = [:]

    static func context(of container: ModelContainer) -> ModelContext {
        if let known = contexts[ObjectIdentifier(container)] { return known }
        let context = ModelContext(container)
        contexts[ObjectIdentifier(container)] = context
        return context
    }
}
