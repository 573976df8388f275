import GRDB

/// Detects commits of other connections to the file. Use it from one thread at a time.
package final class ChangeDetector: Sendable {
    private let database: DatabaseQueue
    private let path: String
    // Safe because one thread at a time uses the detector.
    nonisolated(unsafe) private var version: Int64?
    nonisolated(unsafe) private var hasMoved = false

    package init(path: String) throws {
        self.path = path
        database = try Connection.open(path: path, configuration: StoreConfiguration(), role: .reader)
    }

    /// Returns whether something was committed since the last call. Costs a read of shared memory.
    package func hasCommit() -> Bool {
        let current = try? database.unsafeRead { db in
            try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA main.data_version"))
        }
        defer { version = current }
        return current == nil || current != version
    }
    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if the path leads to another file, or to none.
    package func checkIsInPlace() throws { try database.unsafeRead { try $0.checkIsInPlace(path) } }

    /// Returns whether the path has begun to lead to another file, or to none, since the last call.
    package func hasMovedAway() -> Bool {
        let isElsewhere = database.unsafeRead { $0.hasMoved(from: path) }
        defer { hasMoved = isElsewhere }
        return isElsewhere && !hasMoved
    }
}
