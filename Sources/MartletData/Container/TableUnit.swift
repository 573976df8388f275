import GRDB
import MartletStore

/// A store of plain tables, and the entities that it keeps.
final class TableUnit: Sendable {
    let store: Store
    let layout: SchemaLayout
    /// What the identifiers of its models carry.
    let identifier: String
    // Safe because it is only used on the connection's queue.
    nonisolated(unsafe) let statements = StatementCache()
    /// Keeps the store in step with others, until it is let go of.
    let session: (any StoreSyncSession)?

    init(store: Store, layout: SchemaLayout, session: (any StoreSyncSession)? = nil) {
        self.store = store
        self.layout = layout
        self.session = session
        identifier = store.identifier.uuidString
    }

    /// The store that a configuration describes, with the tables of a schema.
    static func open(
        _ configuration: ModelConfiguration, _ schema: Schema, _ layout: SchemaLayout,
        plan: (any SchemaMigrationPlan.Type)?
    ) throws -> TableUnit {
        guard configuration.sync == nil || (configuration.allowsSave && !configuration.isStoredInMemoryOnly) else {
            throw SwiftDataError.configuration.because(
                "\(configuration.name) can't be synced: that needs a file, and the right to write in it.")
        }
        let store = try open(configuration)
        store.database.inDatabase { TextFunctions.add(to: $0) }
        try StoreOpener(store: store, schema: schema, layout: layout, plan: plan).run(
            allowsChanges: configuration.allowsSave)
        let session = try configuration.sync?.start(store: configuration.url.path)
        return TableUnit(store: store, layout: layout, session: session)
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

    func deleteAllData() throws {
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
