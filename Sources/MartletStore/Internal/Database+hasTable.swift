package import GRDB

extension Database {
    /// Returns whether a table of this name exists now. GRDB's `tableExists` caches its answer, but other processes
    /// create tables too.
    package func hasTable(_ name: String) throws -> Bool {
        try Bool.fetchOne(
            cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE)"),
            arguments: [name]) ?? false
    }
}
