/// How a store gets from one version of its models to the next.
///
/// All stages from the store's version to the container's run in one transaction of the file: it has the new version
/// afterwards, or is as it was.
public protocol SchemaMigrationPlan: SendableMetatype {
    /// Every version, oldest first.
    static var schemas: [any VersionedSchema.Type] { get }
    /// One from each version but the newest, to a later one.
    static var stages: [MigrationStage] { get }
    /// Called while a store is migrated, on the thread that opens it: at the beginning of each step, and for every
    /// 20,000 rows of a table that is made anew. Does nothing by default.
    static func migrationDidProgress(_ progress: MigrationProgress)
}

extension SchemaMigrationPlan {
    public static func migrationDidProgress(_ progress: MigrationProgress) {}
}

/// One step of a plan.
///
/// The closures of a custom stage get a context of their own, which is only good until they return. What it saves is a
/// transaction of the history, and is written into the migration's: when anything fails later, it never happened. What
/// isn't saved when the closure returns is lost.
public enum MigrationStage: Sendable {
    /// What changed can be worked out from the two versions.
    case lightweight(fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type)
    /// The same, with work of the app before it, on the old models, and after it, on the new ones.
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
