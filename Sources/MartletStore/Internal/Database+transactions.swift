package import GRDB
import GRDBSQLite

extension Database {
    /// Runs `body` in an immediate transaction, which is committed when it returns and rolled back when it throws.
    ///
    /// As GRDB's own `inTransaction`, with the statements that begin and end it compiled once, which is a fifth of the
    /// cost of a small transaction. For bodies of our own, which let every error pass: GRDB also refuses to go on after
    /// one that made SQLite roll back.
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

    /// Runs `body` in one transaction, so that all that it reads is of one moment.
    ///
    /// For bodies of our own, which write nothing. GRDB's `read` makes sure of that with `PRAGMA query_only`, and
    /// SQLite then compiles every statement of the connection anew, the ones that are kept to be used again among them.
    package func readTransaction<T>(_ body: () throws -> T) throws -> T {
        try step("BEGIN DEFERRED TRANSACTION")
        let result = Result(catching: body)
        do {
            // What has written nothing can be committed, whatever came of it.
            if isInsideTransaction { try step("COMMIT TRANSACTION") }
        } catch {
            try? step("ROLLBACK TRANSACTION")
            _ = try result.get()
            throw error
        }
        return try result.get()
    }

    /// A number that changes with each commit to the file, by this connection or any other; as of when this one last
    /// began to read. Nil where SQLite doesn't say.
    package var dataVersion: UInt32? {
        var version: UInt32 = 0
        let code = sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_DATA_VERSION, &version)
        return code == SQLITE_OK ? version : nil
    }

    /// True where the path that this connection has open leads to another file by now, or to none. What is written then
    /// is seen by nobody who opens the path.
    package var hasMoved: Bool {
        var moved: CInt = 0
        let code = sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
        return code == SQLITE_OK && moved != 0
    }

    /// Past GRDB, which would tell observers of transactions that something was committed.
    private func step(_ sql: String) throws {
        let statement = try cachedStatement(sql: sql).sqliteStatement
        let code = sqlite3_step(statement)
        sqlite3_reset(statement)
        guard code == SQLITE_DONE else { throw StoreError(lastOf: sqliteConnection) }
    }
}

extension DatabaseQueue {
    /// The same on the connection of a queue. Blocks while another thread has it.
    package func readTransaction<T>(_ body: (Database) throws -> T) throws -> T {
        try writeWithoutTransaction { db in try db.readTransaction { try body(db) } }
    }
}
