import GRDB

/// Facts about a store for `martlet doctor`.
package struct StoreFacts: Sendable {
    package var integrity: String
    package var foreignKeys: ForeignKeyCheck
    package var journalMode: String
    package var missingTriggers: [String]
    package var sqliteVersion: Int
    package var sqliteVersionText: String
}

extension Store {
    /// Collects the facts for `martlet doctor`. Reads the whole file once.
    package func examine() throws -> StoreFacts {
        try read { db in
            let triggers = Set(
                try String.fetchAll(
                    db, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND sql IS NOT NULL"))
            let missing = try Catalog.load(db).entities.filter { entity in
                !Set(CaptureTriggers(entity).statements).isSubset(of: triggers)
            }
            let version = try String.fetchOne(db, sql: "SELECT sqlite_version()") ?? ""
            let parts = version.split(separator: ".").compactMap { Int($0) }
            return StoreFacts(
                integrity: try IntegrityCheck.run(db),
                foreignKeys: try ForeignKeyCheck.run(db),
                journalMode: try String.fetchOne(db, sql: "PRAGMA journal_mode") ?? "",
                missingTriggers: missing.map(\.name),
                sqliteVersion: parts.count == 3 ? parts[0] * 1_000_000 + parts[1] * 1000 + parts[2] : 0,
                sqliteVersionText: version)
        }
    }
}
