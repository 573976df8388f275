package import GRDB
import MartletCore
import MartletReplica
import MartletStore

/// Whether the tables of a configuration can take rows of a source.
package enum IngestTables {
    /// A reason why records of a topic have to wait.
    package struct Problem: Sendable {
        package var topic: String
        package var error: IngestError
        /// True if the table is missing, and may be created later.
        package var isMissing: Bool
    }

    /// - Throws: ``/MartletCore/StoreError`` if the store can't be read.
    package static func problems(_ configuration: IngestConfiguration, _ db: Database) throws -> [Problem] {
        let catalog = try Catalog.load(db)
        let filters = try RowFilters(db, catalog)
        return configuration.topics.compactMap { mapping in
            guard let entity = catalog.entity(mapping.table, []) else {
                return Problem(topic: mapping.topic, error: TargetTable.missing(mapping), isMissing: true)
            }
            return TargetTable.problem(of: entity, filters).map {
                Problem(topic: mapping.topic, error: $0, isMissing: false)
            }
        }
    }
}
