import CMartletSQLite
import Foundation
package import GRDB
import GRDBSQLite
import Synchronization

/// Makes connections with the settings that capture relies on.
package enum Connection {
    package enum Role {
        /// Writes are captured by triggers.
        case writer
        /// Neither triggers nor foreign-key actions run: what is written is somebody else's transaction, whose effects
        /// on tracked tables come with it. Whoever writes through it writes the log rows too. See ``DerivedWrites``.
        case applier
        /// Copies the write-ahead log into the file. Writes nothing else.
        case checkpointer
        /// Reads only.
        case reader
    }

    /// - Parameter checkpointer: takes care of the log instead of SQLite. Kept as long as the connection.
    package static func open(
        path: String, configuration: StoreConfiguration, role: Role, checkpointer: Checkpointer? = nil
    ) throws -> DatabaseQueue {
        var options = Configuration()
        options.readonly = configuration.isReadOnly || role == .reader
        options.foreignKeysEnabled = role == .writer
        // Whoever copies waits for nobody.
        options.busyMode =
            role == .checkpointer ? .immediateError : .callback(waiter(upTo: configuration.busyTimeout))
        options.label = "martlet"
        let isReadOnly = options.readonly
        options.prepareDatabase { db in
            if !isReadOnly {
                try db.execute(sql: "PRAGMA synchronous = \(configuration.synchronous == .full ? "FULL" : "NORMAL")")
                try db.execute(sql: "PRAGMA secure_delete = \(configuration.secureDelete ? 1 : 0)")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = \(configuration.walAutocheckpointPages)")
            }
            try db.execute(sql: "PRAGMA cache_size = -\(configuration.cacheKiB)")
            // The copies of triggers on the applier run as they do in most programs, which leave it off.
            try db.execute(sql: "PRAGMA recursive_triggers = \(role == .applier ? "OFF" : "ON")")
            if !isReadOnly, let handle = db.sqliteConnection { checkpointer?.attach(to: handle) }
            guard role != .writer || !configuration.isObserved, let handle = db.sqliteConnection else { return }
            // GRDB notes for its observers what each statement touches, as it is compiled. These connections have none,
            // and compiling takes half as long again with it.
            sqlite3_set_authorizer(handle, nil, nil)
            guard role != .applier || martlet_disable_triggers(handle) == SQLITE_OK else {
                throw StoreError(.sqlite, "SQLite refuses to disable triggers for one connection.")
            }
        }
        // Of a file that is open already there is no question.
        if !isReadOnly, role != .checkpointer { try StaleLog.check(path) }
        do {
            return try DatabaseQueue(path: path, configuration: options)
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Switches the file to a write-ahead log, where it has none yet.
    ///
    /// Where another connection is writing, or switches at the same time, SQLite refuses without asking the busy
    /// handler: this one is reading by then, and the two could wait for each other. Once it is refused it no longer
    /// reads, and can try again.
    static func useWAL(_ db: Database, waitingUpTo timeout: Duration) throws {
        let begin = ContinuousClock.now
        while true {
            do {
                return try db.execute(sql: "PRAGMA journal_mode = WAL")
            } catch let error as DatabaseError
                where error.resultCode == .SQLITE_BUSY && ContinuousClock.now - begin < timeout
            {
                Thread.sleep(forTimeInterval: 0.0005)
            }
        }
    }

    /// Waits for a lock by looking often. SQLite's own handler sleeps for up to 100 ms at a time, and a program that
    /// commits in a loop has the lock again whenever it wakes.
    private static func waiter(upTo timeout: Duration) -> Database.BusyCallback {
        let begin = Mutex(ContinuousClock.now)
        return { tries in
            let now = ContinuousClock.now
            let waited = begin.withLock { begin in
                if tries == 0 { begin = now }
                return now - begin
            }
            guard waited < timeout else { return false }
            Thread.sleep(forTimeInterval: waited < .milliseconds(100) ? 0.0005 : 0.002)
            return true
        }
    }
}
