import Dispatch
public import MartletStore

/// The stores of an app's models, and their schema. May be used from any thread.
///
/// Each configuration is one store, which contains the models in its schema and the models related to them; one
/// configuration may have no schema, and contains the rest. A relationship can't lead from one store to another.
public final class ModelContainer: Sendable {
    public let schema: Schema
    /// The configurations of the stores made of tables. Custom stores have their own.
    public let configurations: Set<ModelConfiguration>
    public let migrationPlan: (any SchemaMigrationPlan.Type)?
    /// The store that contains the models, for history, cursors, and syncing with MartletSync. With several, the store
    /// of the first ``ModelConfiguration``; with none, an empty store in memory. In a stage of a migration it is
    /// read-only, and sees the file as it was before the migration.
    public let store: Store
    /// Indexed by ``EntityLayout/unit``.
    let units: [StoreUnit]

    /// The context of the main actor, created on first use.
    @MainActor public var mainContext: ModelContext {
        MainContexts.context(of: self)
    }

    /// Opens the stores, and creates missing ones. Their tables are tracked from then on.
    ///
    /// Blocks until they are open, and migrated where necessary: each in one transaction of its file.
    /// ``SchemaMigrationPlan/migrationDidProgress(_:)`` receives the progress. Without a plan, the changes are inferred
    /// from the schema that a store has recorded.
    /// - Throws: ``SwiftDataError`` with `.invalidSchema`, `.incompatibleStore`, `.missingMigration`,
    ///   `.migrationFailed`, `.configuration`, `.unknownSchema` for a schema without models, or `StoreError` if a file
    ///   can't be opened.
    public convenience init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: [ModelConfiguration] = []
    ) throws {
        try self.init(schema, migrationPlan, configurations)
    }

    /// Opens custom stores, or several kinds of stores.
    @_disfavoredOverload
    public convenience init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: [any DataStoreConfiguration]
    ) throws {
        try self.init(schema, migrationPlan, configurations)
    }

    private init(
        _ schema: Schema, _ plan: (any SchemaMigrationPlan.Type)?, _ given: [any DataStoreConfiguration]
    ) throws {
        let given = given.isEmpty ? [ModelConfiguration(schema: schema)] : given
        let tables = given.compactMap { $0 as? ModelConfiguration }
        self.schema = schema
        migrationPlan = plan
        configurations = Set(tables)
        try Self.checkFiles(tables)
        for schema in [schema] + given.compactMap(\.schema) { try schema.checkModels() }
        let schemas = try StoreAssignment.schemas(of: schema, given.map { .init(name: $0.name, schema: $0.schema) })
        units = try zip(given, schemas).enumerated().map { index, pair in
            if let configuration = pair.0 as? ModelConfiguration {
                let layout = try SchemaLayout(pair.1, unit: index)
                return .tables(try TableUnit.open(configuration, pair.1, layout, plan: plan))
            }
            let layout = try SchemaLayout(pair.1, unit: index, keepsLists: true)
            return .snapshots(try SnapshotUnit(pair.0, pair.1, layout, plan: plan))
        }
        store = try units.lazy.compactMap(\.tables).first?.store ?? Store.create(path: ":memory:")
        for unit in units { unit.changes.belongs(to: self) }
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

    @_disfavoredOverload
    public convenience init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: any DataStoreConfiguration...
    ) throws {
        try self.init(schema, migrationPlan, configurations)
    }

    @_disfavoredOverload
    public convenience init(
        for models: any PersistentModel.Type..., migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: any DataStoreConfiguration...
    ) throws {
        try self.init(Schema(models), migrationPlan, configurations)
    }

    /// For contexts in a stage of a migration.
    ///
    /// - Parameter store: the value of ``store``.
    init(
        _ access: StoreAccess, _ store: Store, _ schema: Schema, _ layout: SchemaLayout, _ container: MigratingContainer
    ) {
        self.schema = schema
        self.store = store
        units = [.tables(TableUnit(access, layout: layout))]
        configurations = container.configurations
        migrationPlan = container.plan
    }

    private static func checkFiles(_ configurations: [ModelConfiguration]) throws {
        var known: [String: String] = [:]
        for configuration in configurations where !configuration.isStoredInMemoryOnly {
            try configuration.checkFileName()
            let url = configuration.url.standardizedFileURL
            // The file may not exist yet, but its directory may still be reachable under two names.
            let path = url.deletingLastPathComponent().resolvingSymlinksInPath()
                .appending(path: url.lastPathComponent).resolvingSymlinksInPath().path
            if let other = known.updateValue(configuration.name, forKey: path) {
                throw SwiftDataError.configuration.because(
                    "The configurations \(other) and \(configuration.name) have the same file. Give each its own.",
                    closer: .duplicateConfiguration)
            }
        }
    }

    // MARK: Entities

    func entity(_ type: any PersistentModel.Type) throws -> EntityLayout {
        if units.count == 1 { return try units[0].layout.entity(type) }
        guard let entity = self[type] else { return try units[0].layout.entity(type) }
        return entity
    }

    subscript(_ type: any PersistentModel.Type) -> EntityLayout? {
        for unit in units { if let entity = unit.layout[type] { return entity } }
        return nil
    }

    subscript(named name: String) -> EntityLayout? {
        for unit in units { if let entity = unit.layout[named: name] { return entity } }
        return nil
    }

    func unit(of entity: EntityLayout) -> StoreUnit { units[entity.unit] }

    // MARK: Sync

    /// Stops the sync of all stores, and returns when operations in flight are finished or are certain to be repeated
    /// at the next start.
    ///
    /// If you don't call it, sync stops some time after the container has been released.
    public func stopSync() async {
        for unit in units { await unit.tables?.session?.stop() }
    }
}

/// The main contexts. A context keeps its container alive, so a container whose main context was requested lives as
/// long as the process.
@MainActor
private enum MainContexts {
    private static var contexts: [ObjectIdentifier: ModelContext] = [:]

    static func context(of container: ModelContainer) -> ModelContext {
        if let known = contexts[ObjectIdentifier(container)] { return known }
        let context = ModelContext(container)
        context.autosave.runs(on: .main)
        context.autosaveEnabled = true
        contexts[ObjectIdentifier(container)] = context
        return context
    }
}
