package import GRDB
import MartletCore
import MartletStore

/// Reading beside the session's own connection.
extension ReplicaSession {
    /// Opens a connection for reading, beside the one for writing.
    package func reader() throws -> DatabaseQueue {
        try Connection.open(path: path, configuration: StoreConfiguration(), role: .reader)
    }

    /// Enqueues all local transactions, and reads in a transaction that sees only enqueued ones. Uses a connection of
    /// its own, so that nobody waits for it.
    package func readStamped<T>(_ body: (Database) throws -> T) throws -> T {
        let reader = try mapErrors { try self.reader() }
        defer { try? reader.close() }
        return try readStamped(on: reader, body)
    }

    /// The same, on a connection that the caller keeps.
    package func readStamped<T>(on reader: DatabaseQueue, _ body: (Database) throws -> T) throws -> T {
        try mapErrors {
            // Other programs may write between the two, in each round.
            for _ in 0..<1000 {
                try transaction { _, _ in }
                let result: T? = try reader.readTransaction { db in try Self.isStamped(db) ? body(db) : nil }
                if let result { return result }
            }
            throw StoreError(
                .busy, "The store could not be read: other programs write to it too often.", hint: "Try again.")
        }
    }

    private static func isStamped(_ db: Database) throws -> Bool {
        // Another program may just have changed the schema.
        guard try ReplicaContext.schemaVersion(db) == Meta.integer(db, MetaKey.schemaVersion) else { return false }
        return try UnstampedChanges.areNone(db)
    }
}
