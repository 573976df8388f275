package import GRDB
import GRDBSQLite

/// Counts the work of SQLite for one connection's statements, in hundreds of virtual machine steps. This measure of
/// work is the same on every machine, however busy it is.
package final class WorkMeter {
    private let queue: DatabaseQueue
    // Safe because SQLite calls back on the thread that uses the connection, and the count is read on the connection's
    // queue.
    nonisolated(unsafe) private var hundreds = 0

    package init(_ queue: DatabaseQueue) {
        self.queue = queue
        queue.inDatabase { db in
            sqlite3_progress_handler(
                db.sqliteConnection, 100,
                { meter in
                    if let meter { Unmanaged<WorkMeter>.fromOpaque(meter).takeUnretainedValue().hundreds += 1 }
                    return 0
                }, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    package var count: Int { queue.inDatabase { _ in hundreds } }
    /// The count, for callers that are already on the connection's queue.
    package var countHere: Int { hundreds }

    deinit {
        queue.inDatabase { sqlite3_progress_handler($0.sqliteConnection, 0, nil, nil) }
    }
}
