package import GRDB
package import MartletStore

extension Store {
    /// Reads from the sync tables. Returns nil for a store that never synced.
    package func readSync<T>(_ body: (Database) throws -> T) throws -> T? {
        try read { db in
            guard try db.hasTable("_martlet_shadows") else { return nil }
            return try body(db)
        }
    }
}
