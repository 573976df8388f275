package import GRDB

extension Database {
    /// Whether there is a table of a name, now. GRDB's `tableExists` remembers what it once saw, and other processes
    /// make tables too.
    package func hasTable(_ name: String) throws -> Bool {
        try Bool.fetchOne(
            cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE)"),
            arguments: [name]) ?? false
    }
}
