/// The progress of a migration, as passed to ``SchemaMigrationPlan/migrationDidProgress(_:)``.
public struct MigrationProgress: Sendable, Hashable {
    public enum Step: Sendable, Hashable {
        /// The stage's `willMigrate` starts.
        case willMigrate
        /// Tables are being changed.
        case tables
        /// The stage's `didMigrate` starts.
        case didMigrate
    }

    public let fromVersion: Schema.Version
    public let toVersion: Schema.Version
    public let step: Step
    /// The model whose rows are being copied, if a table is being rebuilt.
    public let entityName: String?
    /// The number of its rows that are done. Zero for other steps, like `totalRowCount`.
    public let completedRowCount: Int
    public let totalRowCount: Int
}
