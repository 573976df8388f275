package import GRDB
import Synchronization

/// The data that a catalog is made from: Martlet's records of the tracked tables, and the SQL of the schema. Equal
/// sources make equal catalogs, and reading a source takes a tenth of the work of asking SQLite for each table, column,
/// index and key.
package struct CatalogSource: Hashable {
    private let values: [DatabaseValue]

    /// - Parameter entities: The records of the tracked tables.
    package init(_ db: Database, entities: [Row]) throws {
        let columns = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM \(InternalName.columns) ORDER BY entity, slot"))
        let schema = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT type, name, tbl_name, sql FROM main.sqlite_schema
                    WHERE type IN ('table', 'index') AND name NOT GLOB '\(InternalName.prefix)*' ORDER BY rowid
                    """))
        values = [entities, columns, schema].flatMap { rows in
            // The count separates the queries, so that no row counts as one of the next query.
            [rows.count.databaseValue] + rows.flatMap { Array($0.databaseValues) }
        }
    }

    // MARK: What was made before

    private static let maxKnown = 64
    private static let made = Mutex<[CatalogSource: Catalog]>([:])

    static func known(_ source: CatalogSource) -> Catalog? { made.withLock { $0[source] } }

    static func note(_ catalog: Catalog, for source: CatalogSource) {
        made.withLock {
            // A process has a store or two, whose schemas rarely change.
            if $0.count >= maxKnown { $0.removeAll() }
            $0[source] = catalog
        }
    }
}
