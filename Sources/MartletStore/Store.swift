public import Foundation
public import GRDB
import Synchronization

/// An SQLite database with a persistent history of its tracked tables.
///
/// Whichever program writes to a tracked table, the history gets the change in the same transaction as the data. See
/// <doc:RulesWhyAndWhatBreaks> for the rules and their reasons.
///
/// A store may be used from any thread. Reads and writes block the calling thread. Writes to one store wait for each
/// other, and for writers in other processes for at most ``StoreConfiguration/busyTimeout``.
public final class Store: Sendable {
    /// The path of the file.
    public let path: String
    public let configuration: StoreConfiguration
    /// Identifies this store in tokens. A copy of the file has the same identifier until it is forked.
    public let identifier: UUID
    /// The connection. Writes through it are captured; use ``write(author:context:_:)`` to give them an author. While
    /// one of GRDB's closures holds the connection, don't use the store otherwise on that thread: GRDB ends the
    /// process. Close the store, not just this connection: the store may have a second connection for checkpoints
    /// (``StoreConfiguration/walAutocheckpointPages``).
    public let database: DatabaseQueue
    package let checkpointer: Checkpointer
    // Safe because the box is only touched on the connection's queue.
    nonisolated(unsafe) private let statements = StatementBox()
    /// The thread that holds the connection, or 0. Each thread only asks whether it is itself.
    private let holder = Atomic<UInt>(0)

    private final class StatementBox {
        var closing: ClosingStatements?
        /// True once the store has released its statements: a caller that gets in before the connection is closed must
        /// not compile new ones.
        var isClosed = false
    }

    /// Opens an existing store, and migrates it to this version's format.
    ///
    /// Also closes a transaction of what other programs committed since the last time, and updates the triggers if the
    /// schema has changed.
    /// - Throws: ``/MartletCore/StoreError`` with code `.notAStore` if the file is absent or was never initialized,
    ///   `.newerVersion`, `.readOnly`, `.corrupt`, `.diskFull` or `.busy`.
    public convenience init(path: String, configuration: StoreConfiguration = .init()) throws {
        guard FileManager.default.fileExists(atPath: path) else {
            throw StoreError(
                .notAStore, "There is no file at \(path).",
                hint: "Create a store with `martlet init \(ShellWord.quoted(path))`.")
        }
        try self.init(path: path, configuration: configuration, creating: false)
    }

    /// Opens the store at the path, or creates one: an empty file, or Martlet's tables in an existing database. No
    /// table is tracked until it is attached.
    ///
    /// A new file has mode 0600, and incremental auto-vacuum, so that an agent can give free pages back to the file
    /// system. An existing file keeps its mode and its setting.
    /// - Throws: The errors of ``init(path:configuration:)``.
    public static func create(path: String, configuration: StoreConfiguration = .init()) throws -> Store {
        try Store(path: path, configuration: configuration, creating: true)
    }

    /// Creates an empty file that only its owner can access, unless the file exists. SQLite creates its `-wal` and
    /// `-shm` files with the same mode.
    private static func makeFile(_ path: String) {
        guard path != ":memory:" else { return }
        // If this fails, SQLite reports the reason.
        let descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        if descriptor >= 0 { Glibc.close(descriptor) }
    }

    private init(path: String, configuration: StoreConfiguration, creating: Bool) throws {
        let problems = configuration.validate()
        guard problems.isEmpty else {
            throw StoreError(.invalidArgument, "Invalid store configuration: \(problems.joined(separator: "; ")).")
        }
        self.path = path
        self.configuration = configuration
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        guard FileManager.default.fileExists(atPath: folder) else {
            throw StoreError(.notAStore, "There is no folder \(folder).", hint: "Create the folder first.")
        }
        if creating { Self.makeFile(path) }
        checkpointer = Checkpointer(path: path, configuration: configuration, yields: true)
        do {
            let database = try Connection.open(
                path: path, configuration: configuration, role: .writer, checkpointer: checkpointer)
            self.database = database
            if configuration.isReadOnly {
                identifier = try database.readTransaction { db in
                    try StoreSchema.checkReadable(try Self.format(db) ?? 0)
                    return try Self.identifier(db, of: path)
                }
            } else {
                // Don't write before it is clear that this is a store.
                let isOurs = try database.readTransaction { try Self.format($0) != nil }
                guard isOurs || creating else { throw Self.notAStore(path) }
                try database.writeWithoutTransaction { db in
                    // Before the first page is written.
                    if creating, path != ":memory:" { try FileSpace.makeShrinkable(db) }
                    try Connection.useWAL(db, waitingUpTo: configuration.busyTimeout)
                }
                // Another process may be creating the same store.
                identifier = try database.writeWithoutTransaction { db in
                    try db.immediateTransaction {
                        if try Self.format(db) == nil { try Self.initialize(db) }
                        let format = try Self.format(db) ?? 0
                        if !configuration.isOfAgent { try Self.checkMayMigrate(from: format, path) }
                        try StoreSchema.migrate(db, from: format)
                        return try Self.identifier(db, of: path)
                    }
                }
                try closeAndFollow()
            }
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Waits for the current access to end, then closes the connection.
    public func close() throws {
        // SQLite closes no connection that has compiled statements.
        try withConnection { _ in
            statements.isClosed = true
            statements.closing = nil
        }
        try mapErrors {
            try checkpointer.close()
            try database.close()
        }
    }

    private static func notAStore(_ path: String) -> StoreError {
        StoreError(
            .notAStore, "\(path) is a database without Martlet's tables.",
            hint: "Run `martlet attach \(ShellWord.quoted(path))` to track its tables.")
    }

    private static func format(_ db: Database) throws -> Int64? {
        guard try db.hasTable(InternalName.meta) else { return nil }
        return try Meta.integer(db, MetaKey.format)
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.busy` if the store has to be migrated, and an agent runs on
    ///   it. An older one would go on as if the store were as before. A new one is about to migrate the store itself.
    private static func checkMayMigrate(from format: Int64, _ path: String) throws {
        guard format < StoreSchema.version, AgentLock.isTaken(path) else { return }
        throw StoreError(
            .busy,
            "The store has format \(format), and an agent of an older version runs on it.",
            hint: "Stop the agent, and start this version of it: it migrates the store. Nothing was changed.")
    }

    private static func initialize(_ db: Database) throws {
        try dropRemains(db)
        try StoreSchema.create(db)
        let identifier = UUID()
        try Meta.set(db, MetaKey.format, StoreSchema.version)
        try Meta.set(db, MetaKey.storeID, identifier.uuidString)
        try Meta.set(db, MetaKey.hiddenNamespace, identifier.uuidString)
        try Meta.set(db, MetaKey.firstAscendingChange, 0)
        try Meta.set(db, MetaKey.stamped, 0)
        try Meta.set(db, MetaKey.prunedThrough, 0)
    }

    /// Drops what is left of Martlet's schema after a tool has emptied or dropped all tables of the file, including
    /// Martlet's own. Nothing in it tells which store it was.
    private static func dropRemains(_ db: Database) throws {
        for type in ["trigger", "view", "table"] {
            let names = try String.fetchAll(
                db, sql: "SELECT name FROM main.sqlite_schema WHERE type = ? AND name GLOB ?",
                arguments: [type, "\(InternalName.prefix)*"])
            for name in names { try db.execute(sql: "DROP \(type) main.\(name.quotedName)") }
        }
    }

    private static func identifier(_ db: Database, of path: String) throws -> UUID {
        guard try format(db) != nil else { throw notAStore(path) }
        guard let identifier = try Meta.text(db, MetaKey.storeID).flatMap(UUID.init(uuidString:)) else {
            throw StoreError(.corrupt, "The store has no identifier.", hint: "Restore the file from a backup.")
        }
        return identifier
    }

    // MARK: Writing

    /// Runs `body` in one immediate transaction, and closes its changes as one history transaction.
    ///
    /// What other programs committed before becomes a separate transaction first. If `body` throws, everything is
    /// rolled back and the error is rethrown. A body that changes no tracked row creates no history transaction.
    ///
    /// - Parameters:
    ///   - author: The author of the change. Readers of the history can filter by it. Must not be one of
    ///     ``TransactionAuthor``, which only Martlet itself uses.
    ///   - context: Any further label, for example the name of the screen or the job.
    /// - Returns: The value that `body` returned.
    /// - Throws: The error that `body` threw, or ``/MartletCore/StoreError`` (`.invalidArgument` for one of
    ///   Martlet's own authors, `.busy`, `.diskFull`, `.readOnly`, or `.nestedUse` inside another such closure of this
    ///   store; every other call to the store throws `.nestedUse` there, too).
    @discardableResult
    public func write<T>(author: String? = nil, context: String? = nil, _ body: (Database) throws -> T) throws -> T {
        try TransactionAuthor.check(author)
        return try write(
            closingWith: TransactionMark(author: author, context: context, process: Self.processName), body)
    }

    /// Runs `body` as ``write(author:context:_:)`` does, and also returns the token of the transaction. Use the token
    /// to read the history from there on, or to wait until the transaction is published, or applied on other nodes.
    ///
    /// - Returns: The value that `body` returned, and the position just after the transaction. The token is nil if no
    ///   tracked row was changed.
    /// - Throws: The errors of ``write(author:context:_:)``.
    public func writeTransaction<T>(
        author: String? = nil, context: String? = nil, _ body: (Database) throws -> T
    ) throws -> (value: T, token: HistoryToken?) {
        try TransactionAuthor.check(author)
        var closed: Int64?
        let mark = TransactionMark(author: author, context: context, process: Self.processName)
        let value = try write(closingWith: mark, body) { closed = $0 }
        return (value, closed.map { HistoryToken(store: identifier, transaction: $0) })
    }

    /// Closes a transaction of what other programs committed, if anything, and updates the triggers after their schema
    /// changes.
    ///
    /// - Returns: True if there was anything to do.
    @discardableResult
    public func closeForeignTransactions() throws -> Bool {
        let isBehind = try read { try TransactionCloser.hasUnclosed($0) || SchemaFollower.hasChanged($0) }
        guard isBehind else { return false }
        try closeAndFollow()
        return true
    }

    @available(*, deprecated, renamed: "closeForeignTransactions()")
    @discardableResult
    public func sealForeignTransactions() throws -> Bool { try closeForeignTransactions() }

    private func closeAndFollow() throws {
        // Others can still write while this looks through a large transaction.
        try read { try closingStatements($0).lookAhead() }
        try write(closingWith: nil) { _ in }
    }

    private func closingStatements(_ db: Database) throws -> ClosingStatements {
        if let closing = statements.closing { return closing }
        guard !statements.isClosed else { throw StoreError(.sqlite, "The store is closed.") }
        let closing = try ClosingStatements(db)
        statements.closing = closing
        return closing
    }

    /// - Parameters:
    ///   - closesParts: Whether the body may close transactions before it ends.
    ///   - closed: Called with the ID of the transaction closed at the end, before the commit. Nil if there was
    ///     nothing to close.
    package func write<T>(
        closingWith mark: TransactionMark?, enforcesForeignKeys: Bool = true, closesParts: Bool = false,
        _ body: (Database) throws -> T, closed: (Int64?) -> Void = { _ in }
    ) throws -> T {
        try requireWritable()
        return try withConnection { db in
            guard !enforcesForeignKeys else { return try transaction(db, closingWith: mark, closesParts, body, closed) }
            let enforced = try Bool.fetchOne(db, sql: "PRAGMA foreign_keys") ?? true
            if enforced { try db.execute(sql: "PRAGMA foreign_keys = OFF") }
            defer { if enforced { try? db.execute(sql: "PRAGMA foreign_keys = ON") } }
            return try transaction(db, closingWith: mark, closesParts, body, closed)
        }
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.readOnly` if the store was opened read-only.
    func requireWritable() throws {
        guard configuration.isReadOnly else { return }
        throw StoreError(.readOnly, "The store was opened read-only.")
    }

    private func transaction<T>(
        _ db: Database, closingWith mark: TransactionMark?, _ closesParts: Bool, _ body: (Database) throws -> T,
        _ closed: (Int64?) -> Void
    ) throws -> T {
        var result: T?
        // GRDB's transaction refuses statements after an error that made SQLite roll back: the body may have caught
        // that error.
        try db.inTransaction(.immediate) {
            let closing = try closingStatements(db)
            try SchemaFollower.follow(
                db, using: closing, isBeginning: true, patience: configuration.schemaPatience)
            let previous = try TransactionCloser.newestMark(
                db, closingWith: .foreign(author: configuration.foreignAuthor), using: closing)
            result = try body(db)
            if let mark {
                // The body may have changed the schema.
                try SchemaFollower.follow(db, using: closing, patience: configuration.schemaPatience)
                closed(
                    closesParts
                        ? try TransactionCloser.close(db, mark: mark, using: closing)
                        : try TransactionCloser.close(db, after: previous, mark: mark, using: closing))
            }
            return .commit
        }
        guard let result else { throw StoreError(.sqlite, "The transaction ended without a result.") }
        return result
    }

    // MARK: The connection

    /// Runs `body` with the connection. Other threads wait for the connection meanwhile.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.nestedUse` on a thread that already holds the connection: it
    ///   would wait forever.
    package func withConnection<T>(_ body: (Database) throws -> T) throws -> T {
        let thread = UInt(pthread_self())
        guard holder.load(ordering: .relaxed) != thread else {
            throw StoreError(
                .nestedUse, "The store was used inside a closure that already holds its connection.",
                hint: "Use the connection that was passed to the closure, or the store after the closure has returned.")
        }
        return try mapErrors {
            try database.writeWithoutTransaction { db in
                holder.store(thread, ordering: .relaxed)
                defer { holder.store(0, ordering: .relaxed) }
                return try body(db)
            }
        }
    }

    /// Runs `body` in one read transaction.
    ///
    /// - Throws: The errors of ``withConnection(_:)``.
    package func read<T>(_ body: (Database) throws -> T) throws -> T {
        try withConnection { db in try db.readTransaction { try body(db) } }
    }

    /// Checks that the store's path still leads to the file that is open. To be called from time to time by whoever
    /// follows a store: others may write to another file by now.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if it doesn't.
    package func checkIsInPlace() throws { try withConnection { try $0.checkIsInPlace(path) } }

    /// Runs `body` in one immediate transaction that leaves no trace in the history: it writes to Martlet's own tables.
    ///
    /// - Throws: The errors of ``withConnection(_:)``.
    package func writeOwnTables<T>(_ body: (Database) throws -> T) throws -> T {
        try withConnection { db in try db.immediateTransaction { try body(db) } }
    }

    package func mapErrors<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    package static let processName =
        "\(ProcessInfo.processInfo.processName)[\(ProcessInfo.processInfo.processIdentifier)]"
}
