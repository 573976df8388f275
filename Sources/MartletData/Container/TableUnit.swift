import GRDB
import MartletStore

/// A store of plain tables, and the entities that it contains.
final class TableUnit: Sendable {
    let store: Store
    let layout: SchemaLayout
    /// The store's identifier in the identifiers of its models.
    let identifier: String
    let access: StoreAccess
    var statements: StatementCache { access.statements }
    /// The observers that are notified of commits.
    let changes: StoreChangeHub
    /// Syncs the store until released.
    let session: (any StoreSyncSession)?

    init(_ access: StoreAccess, layout: SchemaLayout, session: (any StoreSyncSession)? = nil) {
        self.access = access
        self.layout = layout
        self.session = session
        store = access.store
        identifier = store.identifier.uuidString
        // While a store is migrated, nobody else can write.
        changes = StoreChangeHub(path: access.isMigrating || store.path == ":memory:" ? nil : store.path)
    }

    /// Opens the store that a configuration describes, with the tables of a schema.
    static func open(
        _ configuration: ModelConfiguration, _ schema: Schema, _ layout: SchemaLayout,
        plan: (any SchemaMigrationPlan.Type)?
    ) throws -> TableUnit {
        guard configuration.sync == nil || (configuration.allowsSave && !configuration.isStoredInMemoryOnly) else {
            throw SwiftDataError.configuration.because(
                "\(configuration.name) can't be synced: that needs a file, and permission to write to it.")
        }
        let opener = try StoreOpener(schema, layout, plan, configuration)
        try opener.checkVersion()
        let store = try open(configuration)
        try store.withConnection { try TextFunctions.add(to: $0) }
        try opener.run(store)
        let session = try configuration.sync?.start(store: configuration.url.path)
        return TableUnit(StoreAccess(store), layout: layout, session: session)
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
        try access.write(author: nil) { db in
            for join in layout.joins { try db.execute(sql: "DELETE FROM \(join.name.quotedName)") }
            for table in layout.tables { try db.execute(sql: "DELETE FROM \(table.name.quotedName)") }
        }
    }
}
