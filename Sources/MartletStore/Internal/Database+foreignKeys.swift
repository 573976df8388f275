package import GRDB
import GRDBSQLite

extension Database {
    /// Whether a row refers to one that doesn't exist, so that SQLite would refuse the commit.
    package var hasOpenForeignKeys: Bool {
        var (count, highest): (Int32, Int32) = (0, 0)
        return sqlite3_db_status(sqliteConnection, SQLITE_DBSTATUS_DEFERRED_FKS, &count, &highest, 0) == SQLITE_OK
            && count != 0
    }
}
