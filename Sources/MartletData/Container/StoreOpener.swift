import GRDB
import MartletStore

/// Brings a store to a container's schema: makes tables that are missing, and has them tracked.
struct StoreOpener {
    let store: Store
    let schema: Schema
    let layout: SchemaLayout
    let plan: (any SchemaMigrationPlan.Type)?

    func run(allowsChanges: Bool) throws {
        let found = try store.database.read { db in try StoredSchema.read(db) }
        let wanted = StoredSchema(schema, layout)
        if let found, found.version > schema.version {
            throw SwiftDataError.incompatibleStore.because(
                "The store is of version \(found.version), the models are of \(schema.version). Open it with the newer app."
            )
        }
        if let found, found == wanted {
            // The last run may have ended between making the tables and having them tracked.
            if allowsChanges, try !isTracked() { try attach() }
            return
        }
        guard allowsChanges else {
            throw SwiftDataError.incompatibleStore.because(
                "The store has other tables than the models need, and the configuration forbids to change it.")
        }
        if let found { return try migrate(found, wanted) }
        try store.write { db in
            let maker = TableMaker(layout: layout)
            for table in layout.tables {
                guard try !db.tableExists(table.name) else {
                    throw SwiftDataError.incompatibleStore.because(
                        "The database has a table \(table.name) that no container made.")
                }
            }
            for table in layout.tables { for sql in maker.create(table) { try db.execute(sql: sql) } }
            for join in layout.joins { for sql in maker.join(join.name, join.first) { try db.execute(sql: sql) } }
            for table in layout.tables { for index in maker.indexes(table) { try db.execute(sql: index.sql) } }
            try wanted.write(db)
        }
        try attach()
    }

    /// One transaction: the store has the new shape afterwards, or is as it was.
    private func migrate(_ found: StoredSchema, _ wanted: StoredSchema) throws {
        let gone = found.tables.filter { table in !wanted.tables.contains { $0.name == table.name } }
        guard gone.isEmpty else {
            throw SwiftDataError.incompatibleStore.because(
                "The store has models that the schema hasn't: \(gone.map(\.name).joined(separator: ", ")). Leaving models out can't be migrated yet."
            )
        }
        try checkPlan(from: found.version)
        let script = try LightweightMigration(found: found, wanted: wanted, layout: layout).script()
        try store.alter(sql: script + (try wanted.statement()))
        try attach()
    }

    /// A custom stage on the way is work that would be left out.
    private func checkPlan(from version: Schema.Version) throws {
        for stage in plan?.stages ?? [] {
            guard case .custom(let from, let to, _, _) = stage, from.versionIdentifier >= version,
                to.versionIdentifier <= schema.version
            else { continue }
            throw SwiftDataError.missingMigration.because(
                "The stage from \(from.versionIdentifier) to \(to.versionIdentifier) is a custom one. Those aren't run yet."
            )
        }
    }

    private func isTracked() throws -> Bool {
        let tracked = try store.database.read { db in
            try Set(String.fetchAll(db, sql: "SELECT name FROM \(InternalName.entities) WHERE state = 'tracked'"))
        }
        return tracked.isSuperset(of: layout.tables.map(\.name) + layout.joins.map(\.name))
    }

    /// Has the history record the tables. Each by itself, as they are known in different ways.
    func attach() throws {
        for table in layout.tables {
            var request = AttachRequest()
            request.tables = [table.name]
            if !table.identity.isEmpty { request.identities = [table.name: table.identity] }
            request.keepsOldValues = table.preservesValues || table.hasTypeColumn
            request.logsExistingRows = true
            _ = try store.attach(request)
        }
        for join in layout.joins {
            var request = AttachRequest()
            request.tables = [join.name]
            request.logsExistingRows = true
            _ = try store.attach(request)
        }
    }
}
