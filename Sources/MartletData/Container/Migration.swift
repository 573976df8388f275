import MartletStore

/// The properties that containers of a migration's contexts report.
struct MigratingContainer {
    var configurations: Set<ModelConfiguration>
    var plan: (any SchemaMigrationPlan.Type)?
}

/// Migrates a store from its version to the container's, in one transaction that the caller runs.
struct Migration {
    let store: Store
    let alteration: Alteration
    let opener: StoreOpener

    /// - Throws: ``SwiftDataError`` or `StoreError`, both with the stage that failed.
    func run(from found: StoredSchema) throws {
        guard let path = opener.path?.including(found) else {
            return try named(found.version, opener.wanted.version) {
                try change(to: opener.schema, opener.layout, opener.wanted.version, isCustom: false)
            }
        }
        for stage in try path.stages(from: found, to: opener.wanted.version) {
            let versions = stage.versions
            try named(versions.from.versionIdentifier, versions.to.versionIdentifier) { try run(stage, of: path) }
        }
        // The store's version in the plan may not cover all of the container's models.
        guard let now = try StoredSchema.read(alteration.database), !opener.wanted.isSame(as: now) else { return }
        try named(now.version, opener.wanted.version) {
            try change(to: opener.schema, opener.layout, opener.wanted.version, isCustom: false)
        }
    }

    private func run(_ stage: MigrationStage, of path: MigrationPath) throws {
        let (from, to) = stage.versions
        let schema = try path.schema(to)
        let layout = try SchemaLayout(schema)
        if let work = stage.willMigrate {
            report(stage, .willMigrate)
            let old = try path.schema(from)
            try run(work, "willMigrate", stage, old, try SchemaLayout(old))
        }
        report(stage, .tables)
        try change(to: schema, layout, schema.version, isCustom: stage.isCustom) { entity, done, total in
            report(stage, .tables, entity, done, total)
        }
        if let work = stage.didMigrate {
            report(stage, .didMigrate)
            try run(work, "didMigrate", stage, schema, layout)
        }
    }

    private func change(
        to schema: Schema, _ layout: SchemaLayout, _ version: Schema.Version, isCustom: Bool,
        progress: (String, Int, Int) -> Void = { _, _, _ in }
    ) throws {
        guard let found = try StoredSchema.read(alteration.database) else {
            throw SwiftDataError.incompatibleStore.because("The store no longer records its schema.")
        }
        var wanted = StoredSchema(schema, layout)
        wanted.version = version
        try withoutActuallyEscaping(progress) { progress in
            try SchemaStep(
                alteration: alteration, difference: SchemaDifference(from: found, to: wanted, layout),
                isCustom: isCustom, progress: progress
            ).run()
        }
    }

    /// Runs one of the app's closures on a context of its own.
    private func run(
        _ work: MigrationStage.Work, _ name: String, _ stage: MigrationStage, _ schema: Schema, _ layout: SchemaLayout
    ) throws {
        let (from, to) = stage.versions
        let actions = ForeignKeyActions(db: alteration.database)
        try actions.install()
        let access = StoreAccess(
            store, migrating: alteration, stage: "migration \(from.versionIdentifier) to \(to.versionIdentifier)")
        defer { access.end() }
        let container = ModelContainer(
            access, try readingStore(), schema, layout,
            MigratingContainer(configurations: [opener.configuration], plan: opener.path?.plan))
        do {
            try work(ModelContext(container))
        } catch {
            throw SwiftDataError.migrationFailed.because("\(name) threw \(type(of: error)).", underlying: error)
        }
        // The closure may have swallowed the error.
        try access.checkTransaction()
        try actions.remove()
    }

    /// Opens the store that the closure's container exposes: the migration's own connection is busy and can't be
    /// entered twice.
    private func readingStore() throws -> Store {
        var options = store.configuration
        options.isReadOnly = true
        return try Store(path: store.path, configuration: options)
    }

    private func report(
        _ stage: MigrationStage, _ step: MigrationProgress.Step, _ entity: String? = nil, _ done: Int = 0,
        _ total: Int = 0
    ) {
        let (from, to) = stage.versions
        opener.path?.plan.migrationDidProgress(
            MigrationProgress(
                fromVersion: from.versionIdentifier, toVersion: to.versionIdentifier, step: step, entityName: entity,
                completedRowCount: done, totalRowCount: total))
    }

    /// Adds the failed stage to errors.
    private func named(_ from: Schema.Version, _ to: Schema.Version, _ body: () throws -> Void) throws {
        let stage = "The migration from \(from) to \(to) failed, and nothing was changed."
        do {
            try store.mapErrors(body)
        } catch let error as SwiftDataError {
            throw error.because("\(stage) \(error.message)")
        } catch var error as StoreError {
            error.message = "\(stage) \(error.message)"
            throw error
        }
    }
}
