package import GRDB

extension Database {
    /// Returns the highest ID in the log. 0 if the log is empty.
    package func lastChange() throws -> Int64 {
        try Int64.fetchOne(self, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0
    }
}
