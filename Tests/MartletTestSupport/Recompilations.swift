package import GRDB
import GRDBSQLite

extension Database {
    /// The number of statements that this connection keeps prepared, and how often SQLite had to recompile them.
    package var recompilations: (statements: Int, count: Int) {
        var (statements, count) = (0, 0)
        var statement = sqlite3_next_stmt(sqliteConnection, nil)
        while statement != nil {
            statements += 1
            count += Int(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_REPREPARE, 0))
            statement = sqlite3_next_stmt(sqliteConnection, statement)
        }
        return (statements, count)
    }
}
