/// The stages of a plan that lead from one version to another.
struct MigrationPath {
    let plan: any SchemaMigrationPlan.Type
    /// The entities in the store, if the container has several stores: each store has its own part of every version.
    /// Otherwise nil.
    private var entities: Set<String>?

    /// - Throws: ``SwiftDataError`` with `.invalidSchema` or `.missingMigration` for a plan that contradicts itself.
    init(_ plan: any SchemaMigrationPlan.Type, for wanted: StoredSchema) throws {
        self.plan = plan
        let versions = plan.schemas.map { $0.versionIdentifier }
        guard let newest = versions.last else { throw Self.malformed(plan, "It lists no schemas.") }
        for (earlier, later) in zip(versions, versions.dropFirst()) where earlier >= later {
            throw Self.malformed(
                plan,
                earlier == later
                    ? "Two of its schemas have the version \(later)."
                    : "Its schemas aren't in order: \(later) comes after \(earlier). List the oldest first.")
        }
        var starts = Set<Schema.Version>()
        for stage in plan.stages {
            let (from, to) = (stage.versions.from.versionIdentifier, stage.versions.to.versionIdentifier)
            for version in [from, to] where !versions.contains(version) {
                throw Self.malformed(
                    plan, "There is a stage from \(from) to \(to), but no schema \(version). Add it to the schemas.")
            }
            guard from < to else {
                throw Self.malformed(plan, "A stage leads from \(from) back to \(to).")
            }
            guard starts.insert(from).inserted else {
                throw Self.malformed(plan, "Two stages start at \(from).")
            }
        }
        for (version, next) in zip(versions, versions.dropFirst()) where version != newest && !starts.contains(version)
        {
            throw SwiftDataError.missingMigration.because(
                """
                \(plan) has no stage from \(version). Add one to \(next): a lightweight one if nothing needs to be \
                done.
                """
            )
        }
        if try version(with: wanted) == nil { entities = wanted.entities }
    }

    private static func malformed(_ plan: any SchemaMigrationPlan.Type, _ problem: String) -> SwiftDataError {
        .invalidSchema.because("\(plan) is invalid. \(problem)")
    }

    private func shape(_ version: any VersionedSchema.Type) throws -> StoredSchema {
        let schema = try schema(version)
        return StoredSchema(schema, try SchemaLayout(schema))
    }

    /// The part of a version's schema that belongs to the store.
    func schema(_ version: any VersionedSchema.Type) throws -> Schema {
        let whole = Schema(versionedSchema: version)
        guard let entities else { return whole }
        let all = try SchemaLayout(whole).entities
        return Schema(
            all.filter { entities.contains($0.name) }.map(\.type), version: version.versionIdentifier)
    }

    /// The same path for a store that also contains these models, from earlier versions.
    func including(_ found: StoredSchema) -> MigrationPath {
        var path = self
        path.entities?.formUnion(found.entities)
        return path
    }

    /// The version with these tables: the one with the same identifier if it has them, otherwise the newest that does.
    private func version(with tables: StoredSchema) throws -> Schema.Version? {
        let same = plan.schemas.first { $0.versionIdentifier == tables.version }
        if let same, try shape(same).hasTables(of: tables) { return tables.version }
        return try plan.schemas.last { try shape($0).hasTables(of: tables) }?.versionIdentifier
    }

    /// The version of the container's models, whose schema may have been created without a version.
    func target(_ wanted: StoredSchema) throws -> Schema.Version {
        if let version = try version(with: wanted) { return version }
        guard let same = plan.schemas.first(where: { $0.versionIdentifier == wanted.version }) else {
            throw SwiftDataError.missingMigration.because(
                """
                \(plan) has no version \(wanted.version). Add the container's models to its schemas, and a stage that \
                leads to them.
                """)
        }
        let differences = try shape(same).differences(from: wanted).joined(separator: ", ")
        throw SwiftDataError.invalidSchema.because(
            """
            The container's models aren't those of version \(wanted.version) in \(plan): \(differences). Create the \
            container with Schema(versionedSchema:).
            """
        )
    }

    /// The stages from the store's version on.
    ///
    /// - Throws: ``SwiftDataError/incompatibleStore`` for a store of a version that the plan doesn't know.
    func stages(from found: StoredSchema, to target: Schema.Version) throws -> [MigrationStage] {
        guard let start = try version(with: found) else { throw try unknown(found) }
        var result: [MigrationStage] = []
        var version = start
        while version < target {
            guard let stage = plan.stages.first(where: { $0.versions.from.versionIdentifier == version }) else { break }
            result.append(stage)
            version = stage.versions.to.versionIdentifier
        }
        guard version == target else {
            throw SwiftDataError.missingMigration.because(
                "The stages of \(plan) lead from \(start) to \(version), past the container's version \(target).")
        }
        return result
    }

    private func unknown(_ found: StoredSchema) throws -> SwiftDataError {
        let known = plan.schemas.map { $0.versionIdentifier }
        guard let same = plan.schemas.first(where: { $0.versionIdentifier == found.version }) else {
            return .incompatibleStore.because(
                """
                The store has version \(found.version), which \(plan) lacks: it has \
                \(known.map(\.description).joined(separator: ", ")). Add that version's models, and a stage from them.
                """,
                closer: .unknownDataStoreSchema)
        }
        let differences = try shape(same).differences(from: found).joined(separator: ", ")
        return .incompatibleStore.because(
            """
            The store has version \(found.version), but differs from that version in \(plan): \(differences). Don't \
            change the models of a version once a store has been made with them; add a new version instead.
            """,
            closer: .unknownDataStoreSchema)
    }
}
