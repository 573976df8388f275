import GRDB
import GRDBSQLite
import Synchronization

/// Brings a store's write-ahead log back into its file, beside the commits of a connection that writes much.
///
/// As SQLite has it, whichever commit finds the log long copies its pages into the file and waits for the disk twice. Here that is
/// left to a connection and a thread of their own. The log can begin anew only when all of it is in the file: what comes to it
/// meanwhile is copied in another round, a short rest by the commit itself, and all of it where the log has become long all the same.
///
/// One round follows the other, and each has pages to copy when it begins: SQLite before 3.51.3 can lose pages where one connection begins
/// a checkpoint of a log that is all copied, while another begins the log anew (https://sqlite.org/wal.html#walresetbug). For the same
/// reason connections leave the log to the store's agent while one runs (docs/decisions/0027).
///
/// Belongs to one connection, and lives as long. The connection's thread and the one that copies meet in it.
package final class Checkpointer: Sendable {
    private let path: String
    private let configuration: StoreConfiguration
    private let yields: Bool
    private let state = Mutex(State())
    /// In the log, after the last commit. Safe because only the connection's thread uses it.
    nonisolated(unsafe) private var pages = 0

    private struct State {
        /// Opened when it is needed: most stores never have so long a log.
        var connection: DatabaseQueue?
        var isClosed = false
        var isCopying = false
        /// How many pages of the log were in the file after the last round, as far as that is known.
        var copied = 0
    }

    /// - Parameter yields: whether the log is left to an agent, where one runs on the store.
    package init(path: String, configuration: StoreConfiguration, yields: Bool) {
        self.path = path
        self.configuration = configuration
        self.yields = yields
    }

    /// Takes over from SQLite's own checkpoints on this connection. It must not outlive this object.
    func attach(to connection: OpaquePointer) {
        guard configuration.walAutocheckpointPages > 0, configuration.checkpointsAside else { return }
        sqlite3_wal_hook(
            connection,
            { checkpointer, connection, _, pages in
                guard let checkpointer, let connection else { return SQLITE_OK }
                Unmanaged<Checkpointer>.fromOpaque(checkpointer).takeUnretainedValue()
                    .committed(connection, pages: Int(pages))
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Waits for the round that is under way. What is committed later stays in the log.
    package func close() throws {
        let connection = state.withLock { state in
            state.isClosed = true
            defer { state.connection = nil }
            return state.connection
        }
        try connection?.close()
    }

    /// Waits until nothing is being copied.
    func wait() {
        state.withLock { $0.connection }?.writeWithoutTransaction { _ in }
    }

    // MARK: Rounds

    private func committed(_ connection: OpaquePointer, pages: Int) {
        // The log has begun anew.
        if pages <= self.pages { state.withLock { $0.copied = 0 } }
        self.pages = pages
        let limit = configuration.walAutocheckpointPages
        guard pages >= limit else { return }
        let step = state.withLock { state in
            Self.step(pages: pages, copied: state.copied, limit: limit, isCopying: state.isCopying)
        }
        // Without end the log doesn't grow, even where the agent is stopped or has nothing to commit.
        if yields, pages < Self.ceiling(limit), AgentLock.isTaken(path) { return }
        switch step {
        case .none: break
        case .aside: copyAside()
        case .now: copyNow(connection, pages: pages)
        }
    }

    private func copyAside() {
        let connection = state.withLock { state -> DatabaseQueue? in
            if state.connection == nil, !state.isClosed {
                // Where that fails, the log is copied when it is long.
                state.connection = try? Connection.open(path: path, configuration: configuration, role: .checkpointer)
            }
            state.isCopying = state.connection != nil
            return state.connection
        }
        connection?.asyncWriteWithoutTransaction { [self] db in
            let copied = db.sqliteConnection.flatMap(Self.copy)
            state.withLock { state in
                state.isCopying = false
                state.copied = copied ?? 0
            }
        }
    }

    private func copyNow(_ connection: OpaquePointer, pages: Int) {
        wait()
        // The round may have begun after this commit.
        guard state.withLock({ $0.copied != pages }) else { return }
        let copied = Self.copy(connection)
        state.withLock { $0.copied = copied ?? 0 }
    }

    /// - Returns: how many pages of the log are in the file now. Nil where another program copies, or where the disk fails: as with SQLite's own
    ///   checkpoints the next commit tries again.
    private static func copy(_ connection: OpaquePointer) -> Int? {
        var pages: Int32 = 0
        var copied: Int32 = 0
        guard sqlite3_wal_checkpoint_v2(connection, "main", SQLITE_CHECKPOINT_PASSIVE, &pages, &copied) == SQLITE_OK
        else { return nil }
        return Int(copied)
    }

    // MARK: When

    /// What a commit does about a log of at least the limit.
    enum Step {
        case none
        /// Has it copied on the other thread.
        case aside
        /// Copies it, and waits for that.
        case now
    }

    /// - Parameters:
    ///   - pages: in the log, after the commit.
    ///   - copied: how many of them are in the file.
    static func step(pages: Int, copied: Int, limit: Int, isCopying: Bool) -> Step {
        if pages >= ceiling(limit) { return .now }
        if isCopying { return .none }
        return pages - copied <= limit / 8 ? .now : .aside
    }

    /// How many pages make a commit wait: eight times the limit as long as that is 40 MB or less, and twice the limit at least.
    static func ceiling(_ limit: Int) -> Int { max(min(limit * 8, 10_000), limit * 2) }
}
