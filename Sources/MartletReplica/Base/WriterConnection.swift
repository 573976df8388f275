package import GRDB
package import MartletCore
package import MartletStore
import Synchronization

/// The connection of a session: a writer of the store that gives other writers and readers their turn. It knows nothing
/// of what is written.
///
/// Safe to use from any thread; calls wait for each other, and block the calling thread.
package final class WriterConnection: Sendable {
    /// Path of the store's file.
    package let path: String
    package let database: DatabaseQueue
    /// Wall clock, in milliseconds since 1970.
    package let now: @Sendable () -> Int64
    /// Clock for intervals.
    package let instant: @Sendable () -> ContinuousClock.Instant
    /// This node's ID. ``adopt(_:)`` changes it.
    package var node: NodeID { currentNode.withLock { $0 } }
    private let currentNode: Mutex<NodeID>
    // Safe because these are only touched on the connection's queue.
    nonisolated(unsafe) private var turns = WriterTurns()
    nonisolated(unsafe) private var readers: ReaderGate
    /// Returns true if nobody else can be waiting for the write lock. Takes as long as listing a folder.
    package let isAlone: @Sendable () -> Bool

    /// - Parameters:
    ///   - readers: waits for transactions of other processes that have read, and may be about to write.
    ///   - isAlone: returns true if nobody else can be waiting for the write lock.
    package init(
        path: String, _ database: DatabaseQueue, node: NodeID, readers: ReaderGate,
        isAlone: @escaping @Sendable () -> Bool = { false }, now: @escaping @Sendable () -> Int64,
        instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) {
        self.path = path
        self.database = database
        currentNode = Mutex(node)
        self.readers = readers
        self.isAlone = isAlone
        self.now = now
        self.instant = instant
    }

    /// Continues under another node ID, which the store has already.
    func adopt(_ node: NodeID) {
        currentNode.withLock { $0 = node }
    }

    /// Runs `body` in one read transaction.
    package func read<T>(_ body: (Database) throws -> T) throws -> T {
        try mapErrors { try database.readTransaction(body) }
    }

    /// Runs `body` in one immediate transaction that leaves rows, clocks and messages alone, once other writers have
    /// had their turn.
    package func write<T>(_ body: (Database) throws -> T) throws -> T {
        try mapErrors {
            try database.writeWithoutTransaction { db in try inTurn(db) { try body(db) } }
        }
    }

    /// Runs `body` in one transaction that changes neither rows nor clocks nor messages, without letting other writers
    /// go first.
    package func writeMeta<T>(_ body: (Database) throws -> T) throws -> T {
        try mapErrors { try database.write(body) }
    }

    package func mapErrors<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Runs `body` in one immediate transaction, once other writers have had their turn. To be called on the
    /// connection's queue, outside a transaction.
    func inTurn<T>(_ db: Database, _ body: () throws -> T) throws -> T {
        turns.wait(now: instant, unless: isAlone)
        readers.wait(now: instant)
        defer { turns.end(at: instant()) }
        return try db.immediateTransaction {
            turns.begin(at: instant())
            return try body()
        }
    }
}
