import CMartletSQLite
import Foundation
package import GRDB
import GRDBSQLite
import Synchronization

/// Opens connections with the settings that capture relies on.
package enum Connection {
    package enum Role {
        /// Writes are captured by triggers.
        case writer
        /// Neither triggers nor foreign-key actions run: the writes belong to a remote transaction, which brings its
        /// effects on tracked tables with it. The writer also writes the log rows. See ``DerivedWrites``.
        case applier
        /// Copies the write-ahead log into the file. Writes nothing else.
        case checkpointer
        /// Reads only.
        case reader
    }

    /// - Parameter checkpointer: Runs checkpoints instead of SQLite. Kept as long as the connection.
    package static func open(
        path: String, configuration: StoreConfiguration, role: Role, checkpointer: Checkpointer? = nil
    ) throws -> DatabaseQueue {
        var options = Configuration()
        options.readonly = configuration.isReadOnly || role == .reader
        options.foreignKeysEnabled = role == .writer
        // A checkpoint waits for no lock.
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
            // On the applier, the copies of triggers run with the setting of most programs, which leave it off.
            try db.execute(sql: "PRAGMA recursive_triggers = \(role == .applier ? "OFF" : "ON")")
            if !isReadOnly, let handle = db.sqliteConnection { checkpointer?.attach(to: handle) }
            guard role != .writer || !configuration.isObserved, let handle = db.sqliteConnection else { return }
            // For its observers, GRDB records what each statement touches while it compiles it. These connections have
            // no observers, and with it compiling takes half as long again.
            sqlite3_set_authorizer(handle, nil, nil)
            guard role != .applier || martlet_disable_triggers(handle) == SQLITE_OK else {
                throw StoreError(.sqlite, "SQLite refuses to disable triggers for one connection.")
            }
        }
        // A checkpoint connection is opened for a file that is already open, and was checked then.
        if !isReadOnly, role != .checkpointer { try StaleLog.check(path) }
        do {
            return try DatabaseQueue(path: path, configuration: options)
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Switches the file to a write-ahead log, unless it has one.
    ///
    /// If another connection is writing, or switches at the same time, SQLite refuses without calling the busy handler:
    /// this connection is already reading, and the two could wait for each other. After the refusal it no longer reads,
    /// and can try again.
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

    /// Waits for a lock by polling often. SQLite's own handler sleeps for up to 100 ms at a time, and a program that
    /// commits in a loop would hold the lock again at each wake-up.
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
