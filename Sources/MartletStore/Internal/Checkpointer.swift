import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// Brings a store's write-ahead log back into its file, beside the commits of a connection that writes much.
///
/// As SQLite has it, whichever commit finds the log long copies its pages into the file and waits for the disk twice.
/// Here that is left to a connection and a thread of their own. The log can begin anew only when all of it is in the
/// file: what comes to it meanwhile is copied in another round, until there is nothing more. A commit waits for that
/// where little is left, and where the log has become long all the same.
///
/// One round of this object follows the other, and each has pages to copy when it begins. SQLite before 3.51.3 can lose
/// pages where one connection begins a checkpoint of a log that is all copied, while another begins the log anew
/// (https://sqlite.org/wal.html#walresetbug): for that it takes somebody else who copies. So that there is none among
/// Martlet's own connections, they leave the log to the store's agent while one runs, until it is very long
/// (docs/decisions/0027).
///
/// Belongs to one connection, and lives as long. The connection's thread and the one that copies meet in it.
package final class Checkpointer: Sendable {
    private let path: String
    private let configuration: StoreConfiguration
    private let yields: Bool
    private let state = Mutex(State())

    private struct State {
        /// Opened when it is needed: most stores never have so long a log.
        var connection: DatabaseQueue?
        /// True where there can be no other connection: commits copy, as SQLite does by itself.
        var isAlone = false
        var isClosed = false
        var isCopying = false
        var log = Log()
    }

    /// What is known of the log since it last began anew.
    struct Log {
        /// How often it has begun anew.
        var generation = 0
        /// How many pages it has, as of the last commit.
        var pages = 0
        /// How many of them are in the file.
        var copied = 0
        /// Whether a commit has waited until all was copied. If the log goes on after that, somebody still reads in it.
        var isHeld = false
    }

    /// - Parameter yields: whether the log is left to an agent, where one runs on the store.
    package init(path: String, configuration: StoreConfiguration, yields: Bool) {
        // As it is now: the process may go to another folder.
        self.path = URL(fileURLWithPath: path).path
        self.configuration = configuration
        self.yields = yields
    }

    /// Takes over from SQLite's own checkpoints on this connection. It must not outlive this object.
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

    /// Waits for what is being copied. Later commits copy by themselves, if there are any.
    package func close() throws {
        let connection = state.withLock { state in
            state.isClosed = true
            return state.connection
        }
        // Commits of other threads wait for it, too, until it is closed.
        try connection?.close()
        state.withLock { $0.connection = nil }
    }

    /// Waits until nothing is being copied.
    func wait() {
        state.withLock { $0.connection }?.writeWithoutTransaction { _ in }
    }

    // MARK: Rounds

    private func committed(_ connection: OpaquePointer, _ name: UnsafePointer<CChar>, pages: Int) {
        let limit = configuration.walAutocheckpointPages
        guard strcmp(name, "main") == 0 else {
            // A database that the user has attached is none of ours: what SQLite does by itself.
            if pages >= limit { sqlite3_wal_checkpoint(connection, name) }
            return
        }
        let step = state.withLock { state in
            if pages <= state.log.pages {
                state.log = Log(generation: state.log.generation + 1)
                // There may be room for another connection by now.
                state.isAlone = false
            }
            state.log.pages = pages
            return Self.step(limit: limit, state.log, isCopying: state.isCopying)
        }
        // Before the log is so long that a commit would have to copy it: the agent may be stopped, or has nothing to
        // commit.
        guard step != .none, pages >= Self.ceiling(limit) / 4 * 3 || !isLeftToAgent else { return }
        if step == .now || !copyAside(connection) { copyNow(connection) }
    }

    private var isLeftToAgent: Bool { yields && AgentLock.isTaken(path) }

    /// - Returns: false where that can't be done.
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

    /// On the other thread: copies what there is, and says whether to go on.
    ///
    /// What comes meanwhile is not left for the next commit, which may come late: who opens a store looks closely at a
    /// log that is older than what was copied from it. Unless an agent has begun meanwhile: two that copy are one too
    /// many.
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

    /// Another connection to the file that this one has. Where another file lies in its place by now, or none, the log
    /// is not that file's: nil.
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

    /// - Returns: how many pages of the log are in the file now. 0 where another program copies, or where the disk
    ///   fails: as with SQLite's own checkpoints the next commit tries again.
    private static func copy(_ connection: OpaquePointer) -> Int {
        var pages: Int32 = 0
        var copied: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(connection, "main", SQLITE_CHECKPOINT_PASSIVE, &pages, &copied)
        return code == SQLITE_OK ? Int(copied) : 0
    }

    // MARK: When

    /// What a commit does about the log.
    enum Step {
        case none
        /// Has it copied on the other thread.
        case aside
        /// Waits until it is copied.
        case now
    }

    static func step(limit: Int, _ log: Log, isCopying: Bool) -> Step {
        guard log.pages >= limit else { return .none }
        if log.pages >= ceiling(limit) || log.pages - log.copied <= limit / 8 && !log.isHeld { return .now }
        return isCopying ? .none : .aside
    }

    /// How many pages make a commit wait: eight times the limit as long as that is 40 MB or less, and twice the limit
    /// at least.
    static func ceiling(_ limit: Int) -> Int { max(min(limit * 8, 10_000), limit * 2) }
}
