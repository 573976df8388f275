import GRDB
import MartletStore

/// Brings a store to a container's schema: creates its tables and tracks them, or migrates them.
struct StoreOpener {
    let schema: Schema
    let layout: SchemaLayout
    let configuration: ModelConfiguration
    /// The schema that the store is to have.
    let wanted: StoredSchema
    let path: MigrationPath?

    init(
        _ schema: Schema, _ layout: SchemaLayout, _ plan: (any SchemaMigrationPlan.Type)?,
        _ configuration: ModelConfiguration
    ) throws {
        self.schema = schema
        self.layout = layout
        self.configuration = configuration
        var wanted = StoredSchema(schema, layout)
        path = try plan.map { [wanted] in try MigrationPath($0, for: wanted) }
        if let path { wanted.version = try path.target(wanted) }
        self.wanted = wanted
    }

    /// Checks a file before anything is written to it: opening a store closes a transaction in the log for what other
    /// programs have committed.
    func checkVersion() throws {
        guard !configuration.isStoredInMemoryOnly, FileManager.default.fileExists(atPath: configuration.url.path) else {
            return
        }
        let file = try Connection.open(path: configuration.url.path, configuration: .init(), role: .reader)
        defer { try? file.close() }
        do {
            try check(try file.read { try StoredSchema.readVersion($0) })
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    private func check(_ version: Schema.Version?) throws {
        guard let version, version > wanted.version else { return }
        throw SwiftDataError.incompatibleStore.because(
            """
            The store has version \(version), but the models have version \(wanted.version). Open it with the newer \
            app. Nothing was changed.
            """,
            closer: .backwardMigration)
    }

    func run(_ store: Store) throws {
        let found = try store.read { try StoredSchema.read($0) }
        try check(found?.version)
        let isCurrent = found.map { wanted.isSame(as: $0) } ?? false
        if isCurrent, try !configuration.allowsSave || store.read(isTracked) {
            return
        }
        guard configuration.allowsSave else {
            throw SwiftDataError.incompatibleStore.because(
                """
                The store's tables don't fit the models, and the configuration forbids changing the store. Open it \
                once with allowsSave: true.
                """
            )
        }
        try store.alter(context: "migration") { alteration in
            // Another process may have been faster.
            let found = try StoredSchema.read(alteration.database)
            try check(found?.version)
            guard let found else { return try create(alteration) }
            if !wanted.isSame(as: found) {
                try Migration(store: store, alteration: alteration, opener: self).run(from: found)
            }
            try TableTracker(alteration, layout, SchemaLineage(of: wanted, layout, path)).track()
        }
    }

    private func create(_ alteration: Alteration) throws {
        let db = alteration.database
        let maker = TableMaker(layout: layout)
        for name in layout.tables.map(\.name) + layout.joins.map(\.name) {
            guard try !db.hasTable(name) else {
                throw SwiftDataError.incompatibleStore.because(
                    "The database has a table \(name) that no container created. Rename it, or the model.")
            }
        }
        let lineage = try SchemaLineage(of: wanted, layout, path)
        for table in layout.tables {
            let retired = lineage.stored.tables.first { $0.name == table.name }?.retired ?? [:]
            try db.execute(sql: maker.create(table, retired: retired))
        }
        for join in layout.joins { for sql in maker.join(join.name, join.first) { try db.execute(sql: sql) } }
        for table in layout.tables { for index in maker.indexes(table) { try db.execute(sql: index.sql) } }
        for table in lineage.stored.leftOut { for sql in maker.leftOut(table) { try db.execute(sql: sql) } }
        for join in lineage.stored.leftOutJoins { for sql in maker.join(join) { try db.execute(sql: sql) } }
        try lineage.stored.write(db)
        let tracker = TableTracker(alteration, layout, lineage)
        try tracker.track()
        try tracker.trackLeftOut()
    }

    private func isTracked(_ db: Database) throws -> Bool {
        let tracked = try Set(
            String.fetchAll(db, sql: "SELECT name FROM \(InternalName.entities) WHERE state = 'tracked'"))
        return tracked.isSuperset(of: layout.tables.map(\.name) + layout.joins.map(\.name))
    }
}
