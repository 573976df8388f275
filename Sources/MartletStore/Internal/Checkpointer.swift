import Foundation
package import GRDB
import GRDBSQLite
import Synchronization

/// Copies a store's write-ahead log back into its file (a checkpoint), beside the commits of a connection that writes
/// much.
///
/// By default in SQLite, the commit that finds the log too long copies its pages into the file and waits for the disk
/// twice. Here, a separate connection and thread do that. The log can restart only when all of it is in the file. Pages
/// that are added in the meantime are copied in another round, until there are none left. A commit waits for that if
/// little is left, or if the log has become too long anyway.
///
/// This object runs one round after another, and each has pages to copy when it begins. SQLite before 3.51.3 can lose
/// pages if one connection begins a checkpoint of a fully copied log while another restarts the log
/// (https://sqlite.org/wal.html#walresetbug). That takes a second connection that runs checkpoints. To avoid this among
/// Martlet's own connections, they leave the log to the store's agent while one runs, until the log is very long
/// (docs/decisions/0027).
///
/// Belongs to one connection, and lives as long as it. Shared by the connection's thread and the checkpoint thread.
package final class Checkpointer: Sendable {
    private let path: String
    private let configuration: StoreConfiguration
    private let yields: Bool
    private let state = Mutex(State())

    private struct State {
        /// Opened on demand: the log of most stores never gets that long.
        var connection: DatabaseQueue?
        /// True if no second connection can be opened. Then commits run the checkpoints, as SQLite does by default.
        var isAlone = false
        var isClosed = false
        var isCopying = false
        var log = Log()
    }

    /// The state of the log since it last restarted.
    package struct Log {
        /// The number of restarts.
        var generation = 0
        /// The number of pages in the log, as of the last commit.
        var pages = 0
        /// The number of those pages that are in the file.
        var copied = 0
        /// Whether a commit has waited until everything was copied. If the log grows after that, a reader still needs
        /// it.
        var isHeld = false

        package init(generation: Int = 0, pages: Int = 0, copied: Int = 0, isHeld: Bool = false) {
            self.generation = generation
            self.pages = pages
            self.copied = copied
            self.isHeld = isHeld
        }
    }

    /// - Parameter yields: Whether to leave the log to an agent, if one runs on the store.
    package init(path: String, configuration: StoreConfiguration, yields: Bool) {
        // Make the path absolute: the process may change its working directory.
        self.path = URL(fileURLWithPath: path).path
        self.configuration = configuration
        self.yields = yields
    }

    /// Replaces SQLite's own checkpoints on this connection. The connection must not outlive this object.
    func attach(to connection: OpaquePointer) {
        guard configuration.walAutocheckpointPages > 0, configuration.checkpointsAside else { return }
        sqlite3_wal_hook(
            connection,
            { checkpointer, connection, name, pages in
                guard let checkpointer, let connection, let name else { return SQLITE_OK }
                Unmanaged<Checkpointer>.fromOpaque(checkpointer).takeUnretainedValue()
                    .committed(connection, name, pages: Int(pages))
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Waits for the running checkpoint, and closes the second connection. Later commits, if any, run checkpoints
    /// themselves.
    package func close() throws {
        let connection = state.withLock { state in
            state.isClosed = true
            return state.connection
        }
        // Commits of other threads also wait for this, until it is closed.
        try connection?.close()
        state.withLock { $0.connection = nil }
    }

    /// Waits until no checkpoint is running.
    package func wait() {
        state.withLock { $0.connection }?.writeWithoutTransaction { _ in }
    }

    /// Starts to copy the log although it isn't long: a file from which pages were cut off becomes smaller only once
    /// all of the log is in it. To be called on the connection that this object belongs to, outside a transaction.
    package func copyRest(_ db: Database) {
        guard configuration.walAutocheckpointPages > 0, configuration.checkpointsAside,
            let connection = db.sqliteConnection
        else { return }
        let isDue = state.withLock { $0.log.pages > $0.log.copied && !$0.isCopying }
        if isDue { _ = copyAside(connection) }
    }

    /// How many connections this object has open.
    package var connectionCount: Int { state.withLock { $0.connection == nil ? 0 : 1 } }

    /// True if the log is so long that commits copy it, and the last one could not copy all of it: another transaction
    /// still reads from it, or another program is copying it.
    package var isHeld: Bool {
        let ceiling = Self.ceiling(configuration.walAutocheckpointPages)
        return state.withLock { $0.log.pages >= ceiling && $0.log.copied < $0.log.pages }
    }

    // MARK: Rounds

    private func committed(_ connection: OpaquePointer, _ name: UnsafePointer<CChar>, pages: Int) {
        let limit = configuration.walAutocheckpointPages
        guard strcmp(name, "main") == 0 else {
            // For a database that the user has attached, do what SQLite does by default.
            if pages >= limit { sqlite3_wal_checkpoint(connection, name) }
            return
        }
        let step = state.withLock { state in
            if pages <= state.log.pages {
                state.log = Log(generation: state.log.generation + 1)
                // It may be possible to open a second connection by now.
                state.isAlone = false
            }
            state.log.pages = pages
            return Self.step(limit: limit, state.log, isCopying: state.isCopying)
        }
        // Don't leave the log to the agent until a commit would have to copy it: the agent may be stopped, or may have
        // nothing to commit.
        guard step != .none, pages >= Self.ceiling(limit) / 4 * 3 || !isLeftToAgent else { return }
        if step == .now || !copyAside(connection) { copyNow(connection) }
    }

    private var isLeftToAgent: Bool { yields && AgentLock.isTaken(path) }

    /// - Returns: False if there is no second connection.
    private func copyAside(_ connection: OpaquePointer) -> Bool {
        let round = state.withLock { state -> (DatabaseQueue, generation: Int)? in
            if state.connection == nil, !state.isClosed, !state.isAlone {
                state.connection = openBeside(connection)
                state.isAlone = state.connection == nil
            }
            guard let other = state.connection, !state.isClosed else { return nil }
            state.isCopying = true
            return (other, state.log.generation)
        }
        guard let round else { return false }
        round.0.asyncWriteWithoutTransaction { [self] db in
            while copyPart(db, of: round.generation) {}
        }
        return true
    }

    /// Copies the available pages on the checkpoint thread, and returns whether to go on.
    ///
    /// Pages that are added in the meantime are not left for the next commit, which may come late: opening a store
    /// takes a closer look at a log that is older than the file into which it was copied. It stops if an agent has
    /// started meanwhile, because only one process should run checkpoints.
    private func copyPart(_ db: Database, of generation: Int) -> Bool {
        let copied = db.sqliteConnection.map(Self.copy) ?? 0
        let isLeftToAgent = isLeftToAgent
        return state.withLock { state in
            let isSame = state.log.generation == generation
            let hasMore = copied > state.log.copied && copied < state.log.pages
            state.isCopying = isSame && hasMore && !isLeftToAgent && !state.isClosed
            if isSame { state.log.copied = copied }
            return state.isCopying
        }
    }

    /// Opens a second connection to this connection's file. Nil if another file, or none, is at its path by now: the
    /// log would not belong to that file.
    private func openBeside(_ connection: OpaquePointer) -> DatabaseQueue? {
        guard let name = sqlite3_db_filename(connection, "main"), !hasMoved(connection),
            let other = try? Connection.open(
                path: String(cString: name), configuration: configuration, role: .checkpointer)
        else { return nil }
        guard !hasMoved(connection) else {
            try? other.close()
            return nil
        }
        return other
    }

    private func hasMoved(_ connection: OpaquePointer) -> Bool {
        var hasMoved: Int32 = 0
        let code = sqlite3_file_control(connection, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
        return code != SQLITE_OK || hasMoved != 0
    }

    private func copyNow(_ connection: OpaquePointer) {
        wait()
        let isCopied = state.withLock { state in
            state.log.isHeld = true
            return state.log.copied >= state.log.pages
        }
        if isCopied { return }
        let copied = Self.copy(connection)
        state.withLock { $0.log.copied = copied }
    }

    /// - Returns: The number of log pages that are now in the file. 0 if another program is running a checkpoint, or if
    ///   the disk fails: as with SQLite's own checkpoints, the next commit tries again.
    private static func copy(_ connection: OpaquePointer) -> Int {
        var pages: Int32 = 0
        var copied: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(connection, "main", SQLITE_CHECKPOINT_PASSIVE, &pages, &copied)
        return code == SQLITE_OK ? Int(copied) : 0
    }

    // MARK: When

    /// The action of a commit on the log.
    package enum Step {
        case none
        /// Starts a checkpoint on the other thread.
        case aside
        /// Waits until the log is copied.
        case now
    }

    package static func step(limit: Int, _ log: Log, isCopying: Bool) -> Step {
        guard log.pages >= limit else { return .none }
        if log.pages >= ceiling(limit) || log.pages - log.copied <= limit / 8 && !log.isHeld { return .now }
        return isCopying ? .none : .aside
    }

    /// Returns the number of pages from which a commit waits: eight times the limit, but at most 10,000 pages (40 MB),
    /// and at least twice the limit.
    package static func ceiling(_ limit: Int) -> Int { max(min(limit * 8, 10_000), limit * 2) }
}
