/// How far a migration is: what ``SchemaMigrationPlan/migrationDidProgress(_:)`` is told.
public struct MigrationProgress: Sendable, Hashable {
    public enum Step: Sendable, Hashable {
        /// The stage's `willMigrate` begins.
        case willMigrate
        /// Tables are changed.
        case tables
        /// The stage's `didMigrate` begins.
        case didMigrate
    }

    public let fromVersion: Schema.Version
    public let toVersion: Schema.Version
    public let step: Step
    /// The model whose rows are being copied, where a table is made anew.
    public let entityName: String?
    /// How many of its rows are done, and how many there are. Zero for other steps.
    public let completedRowCount: Int
    public let totalRowCount: Int
}
