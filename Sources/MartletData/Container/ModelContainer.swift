import Dispatch
public import MartletStore

/// The stores of an app's models, and their schema. May be used from any thread.
///
/// Each configuration is one store, which keeps the models that its schema names and what they are related to; one
/// configuration may have no schema, and keeps the rest. A relationship stays in one store.
public final class ModelContainer: Sendable {
    public let schema: Schema
    /// Those of tables. Stores of one's own know theirs.
    public let configurations: Set<ModelConfiguration>
    public let migrationPlan: (any SchemaMigrationPlan.Type)?
    /// The store that keeps the models, for history, cursors, and syncing with MartletSync. That of the first
    /// ``ModelConfiguration`` where there are several, and an empty one in memory where there is none. In a stage of a
    /// migration it only reads, and sees the file as it was before the migration.
    public let store: Store
    /// By ``EntityLayout/unit``.
    let units: [StoreUnit]

    /// The context of the main actor, made when it is first asked for.
    @MainActor public var mainContext: ModelContext {
        MainContexts.context(of: self)
    }

    /// Opens the stores, and makes those that aren't there. Their tables are tracked from then on.
    ///
    /// Blocks until they are open, and migrated where that is necessary: each in one transaction of its file. What
    /// ``SchemaMigrationPlan/migrationDidProgress(_:)`` is told says how far that is. Without a plan, what changed is
    /// worked out from what a store remembers of its models.
    /// - Throws: ``SwiftDataError`` with `.invalidSchema`, `.incompatibleStore`, `.missingMigration`,
    ///   `.migrationFailed`, `.configuration`, `.unknownSchema` for a schema without models, or `StoreError` where a
    ///   file can't be opened.
    public convenience init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: [ModelConfiguration] = []
    ) throws {
        try self.init(schema, migrationPlan, configurations)
    }

    /// With stores of one's own, or with several kinds of them.
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
    /// - Parameter store: what ``store`` is.
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
            // The file may not be there yet; its folder may have two names all the same.
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

    /// Ends the sync of all stores, and returns when what was in flight is finished or will be done again at the next
    /// start.
    ///
    /// Without it, sync ends some time after the container is gone.
    public func stopSync() async {
        for unit in units { await unit.tables?.session?.stop() }
    }
}

/// The main contexts. A context holds its container, so that one which was asked for lives as long as the process.
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
