package import GRDB
import GRDBSQLite

extension Database {
    /// Runs `body` in an immediate transaction. Commits when it returns, and rolls back when it throws.
    ///
    /// Works like GRDB's `inTransaction`, but the statements that begin and end the transaction are compiled only once.
    /// Compiling them is a fifth of the cost of a small transaction. Only for Martlet's own bodies, which rethrow every
    /// error: GRDB also refuses to continue after an error that made SQLite roll back.
    package func immediateTransaction<T>(_ body: () throws -> T) throws -> T {
        try cachedStatement(sql: "BEGIN IMMEDIATE TRANSACTION").execute()
        do {
            let result = try body()
            guard isInsideTransaction else {
                throw StoreError(.sqlite, "SQLite has rolled the transaction back.", hint: "Martlet retries it.")
            }
            try cachedStatement(sql: "COMMIT TRANSACTION").execute()
            return result
        } catch {
            if isInsideTransaction { try? rollback() }
            throw error
        }
    }

    /// Runs `body` in one read transaction, so that all its reads see the same state.
    ///
    /// Only for Martlet's own bodies, which write nothing. GRDB's `read` enforces that with `PRAGMA query_only`, after
    /// which SQLite compiles every statement of the connection again, including the cached ones.
    package func readTransaction<T>(_ body: () throws -> T) throws -> T {
        try step("BEGIN DEFERRED TRANSACTION")
        let result = Result(catching: body)
        do {
            // A transaction without writes can be committed, whatever its result.
            if isInsideTransaction { try step("COMMIT TRANSACTION") }
        } catch {
            try? step("ROLLBACK TRANSACTION")
            _ = try result.get()
            throw error
        }
        return try result.get()
    }

    /// A number that changes with each commit to the file, by this connection or another one, as of this connection's
    /// last read. Nil if SQLite doesn't provide it.
    package var dataVersion: UInt32? {
        var version: UInt32 = 0
        let code = sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_DATA_VERSION, &version)
        return code == SQLITE_OK ? version : nil
    }

    /// Bypasses GRDB, which would report a commit to transaction observers.
    private func step(_ sql: String) throws {
        let statement = try cachedStatement(sql: sql).sqliteStatement
        let code = sqlite3_step(statement)
        sqlite3_reset(statement)
        guard code == SQLITE_DONE else { throw StoreError(lastOf: sqliteConnection) }
    }
}

extension DatabaseQueue {
    /// Runs `body` in one read transaction on the queue's connection. Blocks while another thread holds it.
    package func readTransaction<T>(_ body: (Database) throws -> T) throws -> T {
        try writeWithoutTransaction { db in try db.readTransaction { try body(db) } }
    }
}
