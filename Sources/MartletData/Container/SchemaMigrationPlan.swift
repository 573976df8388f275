/// The way a store gets from one version of its models to the next.
///
/// All stages from the store's version to the container's run in one transaction of the file: afterwards the store
/// either has the new version or is unchanged.
public protocol SchemaMigrationPlan: SendableMetatype {
    /// Every version, oldest first.
    static var schemas: [any VersionedSchema.Type] { get }
    /// One stage from each version but the newest, to a later one.
    static var stages: [MigrationStage] { get }
    /// Called while a store is migrated, on the thread that opens it: at the start of each step, and for every 20,000
    /// rows of a table that is rebuilt. Does nothing by default.
    static func migrationDidProgress(_ progress: MigrationProgress)
}

extension SchemaMigrationPlan {
    public static func migrationDidProgress(_ progress: MigrationProgress) {}
}

/// One step of a plan.
///
/// The closures of a custom stage get a context of their own, which is only valid until they return. Each save is a
/// transaction of the history, inside the migration's transaction: if anything fails later, it is rolled back. Changes
/// that aren't saved when the closure returns are lost.
public enum MigrationStage: Sendable {
    /// A migration that can be inferred from the two versions.
    case lightweight(fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type)
    /// The same, with the app's own work before it, on the old models, and after it, on the new ones.
    case custom(
        fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
        willMigrate: (@Sendable (ModelContext) throws -> Void)?,
        didMigrate: (@Sendable (ModelContext) throws -> Void)?)
}

extension MigrationStage {
    typealias Work = @Sendable (ModelContext) throws -> Void

    var versions: (from: any VersionedSchema.Type, to: any VersionedSchema.Type) {
        switch self {
        case .lightweight(let from, let to), .custom(let from, let to, _, _): (from, to)
        }
    }

    var isCustom: Bool { if case .custom = self { true } else { false } }
    var willMigrate: Work? { if case .custom(_, _, let work, _) = self { work } else { nil } }
    var didMigrate: Work? { if case .custom(_, _, _, let work) = self { work } else { nil } }
}
