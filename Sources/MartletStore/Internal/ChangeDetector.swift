import GRDB

/// Detects commits of other connections to the file. Use it from one thread at a time.
package final class ChangeDetector: Sendable {
    private let database: DatabaseQueue
    // Safe because one thread at a time uses the detector.
    nonisolated(unsafe) private var version: Int64?

    package init(path: String) throws {
        database = try Connection.open(path: path, configuration: StoreConfiguration(), role: .reader)
    }

    /// Returns whether something was committed since the last call. Costs a read of shared memory.
    package func hasChanged() -> Bool {
        let current = try? database.unsafeRead { db in
            try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA main.data_version"))
        }
        defer { version = current }
        return current == nil || current != version
    }
}
