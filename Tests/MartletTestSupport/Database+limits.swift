package import GRDB
import GRDBSQLite

extension Database {
    /// Lowers the largest text or blob that SQLite takes on this connection, in bytes.
    package func limitValues(to count: Int) {
        sqlite3_limit(sqliteConnection, SQLITE_LIMIT_LENGTH, Int32(count))
    }
}
