public import Foundation
public import GRDB
import Synchronization

/// An SQLite database with a persistent history of its tracked tables.
///
/// Whichever program writes to a tracked table, the change is in the history, in the same transaction as the data. See
/// <doc:RulesWhyAndWhatBreaks> for the rules and their reasons.
///
/// A store may be used from any thread. Reads and writes block the calling thread; writes of one store wait for each
/// other, and for writers in other processes at most for ``StoreConfiguration/busyTimeout``.
public final class Store: Sendable {
    /// The file.
    public let path: String
    public let configuration: StoreConfiguration
    /// Names this store in tokens. A copy of the file has the same one until it is forked.
    public let identifier: UUID
    /// The connection. Writes through it are captured; give them an author with ``write(author:context:_:)``. While one
    /// of GRDB's closures has it, nothing else of the store can be used on that thread: GRDB ends the process. Close
    /// the store, not this alone: the store may have another connection, which copies the log
    /// (``StoreConfiguration/walAutocheckpointPages``).
    public let database: DatabaseQueue
    let checkpointer: Checkpointer
    // Safe because the box is only touched on the connection's queue.
    nonisolated(unsafe) private let statements = StatementBox()
    /// The thread that has the connection, or 0. Each thread only asks whether it is that one.
    private let holder = Atomic<UInt>(0)

    private final class StatementBox {
        var seal: SealStatements?
        /// True from the moment on in which the store lets go of its statements: whoever comes before the connection is
        /// closed must not compile others.
        var isClosed = false
    }

    /// Opens an existing store, and brings it to this version's format.
    ///
    /// Also seals what other programs committed since the last time, and makes triggers follow a changed schema.
    /// - Throws: ``/MartletCore/StoreError`` with code `.notAStore` when the file is absent or was never initialized,
    ///   `.newerVersion`, `.readOnly`, `.corrupt`, `.diskFull`, `.busy`.
    public convenience init(path: String, configuration: StoreConfiguration = .init()) throws {
        guard FileManager.default.fileExists(atPath: path) else {
            throw StoreError(
                .notAStore, "There is no file at \(path).", hint: "Create a store with `martlet init \(path)`.")
        }
        try self.init(path: path, configuration: configuration, creating: false)
    }

    /// Opens the store at the path, and makes one where there is none: an empty file, or Martlet's tables in an
    /// existing database. No table is tracked until it is attached.
    ///
    /// A new file has mode 0600. An existing one keeps its mode.
    /// - Throws: as ``init(path:configuration:)``.
    public static func create(path: String, configuration: StoreConfiguration = .init()) throws -> Store {
        try Store(path: path, configuration: configuration, creating: true)
    }

    /// Makes an empty file for its owner alone, where there is none. SQLite makes those beside it with the same mode.
    private static func makeFile(_ path: String) {
        guard path != ":memory:" else { return }
        // Where that fails, SQLite says why.
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
                // Not before it is clear whose database this is.
                let isOurs = try database.readTransaction { try Self.format($0) != nil }
                guard isOurs || creating else { throw Self.notAStore(path) }
                try database.writeWithoutTransaction { db in
                    try Connection.useWAL(db, waitingUpTo: configuration.busyTimeout)
                }
                // Another process may be making the same store.
                identifier = try database.writeWithoutTransaction { db in
                    try db.immediateTransaction {
                        if try Self.format(db) == nil { try Self.initialize(db) }
                        try StoreSchema.migrate(db, from: try Self.format(db) ?? 0)
                        return try Self.identifier(db, of: path)
                    }
                }
                try sealAndFollow()
            }
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Waits for the current access to end, and closes the connection.
    public func close() throws {
        // SQLite closes no connection that has compiled statements.
        try withConnection { _ in
            statements.isClosed = true
            statements.seal = nil
        }
        try mapErrors {
            try checkpointer.close()
            try database.close()
        }
    }

    private static func notAStore(_ path: String) -> StoreError {
        StoreError(
            .notAStore, "\(path) is a database without Martlet's tables.",
            hint: "Run `martlet attach \(path)` to track its tables.")
    }

    private static func format(_ db: Database) throws -> Int64? {
        guard try db.hasTable(InternalName.meta) else { return nil }
        return try Meta.integer(db, MetaKey.format)
    }

    private static func initialize(_ db: Database) throws {
        try dropRemains(db)
        try StoreSchema.create(db)
        let identifier = UUID()
        try Meta.set(db, MetaKey.format, StoreSchema.version)
        try Meta.set(db, MetaKey.storeID, identifier.uuidString)
        try Meta.set(db, MetaKey.hiddenNamespace, identifier.uuidString)
        try Meta.set(db, MetaKey.registered, 0)
        try Meta.set(db, MetaKey.prunedThrough, 0)
    }

    /// What is left where a tool has emptied or dropped all tables of the file, Martlet's own among them: nothing that
    /// says which store it was.
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

    /// Runs `body` in one immediate transaction, and seals what it changed as one history transaction.
    ///
    /// What other programs committed before is sealed first, as a transaction of its own. When `body` throws,
    /// everything is rolled back and the error passed on. A body that changes no tracked row makes no history
    /// transaction.
    ///
    /// - Parameters:
    ///   - author: who makes the change; readers of the history can filter by it.
    ///   - context: any further mark, for example the name of the screen or the job.
    /// - Returns: what `body` returned.
    /// - Throws: what `body` threw, or ``/MartletCore/StoreError`` (`.busy`, `.diskFull`, `.readOnly`; `.nestedUse`
    ///   inside of another such closure of this store, as with everything else of the store that is used there).
    @discardableResult
    public func write<T>(author: String? = nil, context: String? = nil, _ body: (Database) throws -> T) throws -> T {
        try write(sealing: SealMark(author: author, context: context, process: Self.processName), body)
    }

    /// As ``write(author:context:_:)``, for whoever needs to know which transaction it became: to read the history from
    /// there on, or to wait until it is published, or applied on other nodes.
    ///
    /// - Returns: what `body` returned, and the position just after the transaction. No token where no tracked row was
    ///   changed.
    /// - Throws: as ``write(author:context:_:)``.
    public func writeTransaction<T>(
        author: String? = nil, context: String? = nil, _ body: (Database) throws -> T
    ) throws -> (value: T, token: HistoryToken?) {
        var sealed: Int64?
        let mark = SealMark(author: author, context: context, process: Self.processName)
        let value = try write(sealing: mark, body) { sealed = $0 }
        return (value, sealed.map { HistoryToken(store: identifier, transaction: $0) })
    }

    /// Seals what other programs committed, where there is anything, and follows what they did to the schema.
    ///
    /// - Returns: true when there was something to do.
    @discardableResult
    public func sealForeignTransactions() throws -> Bool {
        let isBehind = try read { try Sealer.hasUnsealed($0) || SchemaFollower.hasChanged($0) }
        guard isBehind else { return false }
        try sealAndFollow()
        return true
    }

    private func sealAndFollow() throws {
        // Others may write while a large transaction is looked through.
        try read { try sealStatements($0).lookAhead() }
        try write(sealing: nil) { _ in }
    }

    private func sealStatements(_ db: Database) throws -> SealStatements {
        if let seal = statements.seal { return seal }
        guard !statements.isClosed else { throw StoreError(.sqlite, "The store is closed.") }
        let seal = try SealStatements(db)
        statements.seal = seal
        return seal
    }

    /// - Parameters:
    ///   - sealsParts: true where the body may seal what it has done so far.
    ///   - sealed: is told the number of the transaction that was made at the end, before it is committed.
    func write<T>(
        sealing mark: SealMark?, enforcesForeignKeys: Bool = true, sealsParts: Bool = false,
        _ body: (Database) throws -> T, sealed: (Int64?) -> Void = { _ in }
    ) throws -> T {
        try requireWritable()
        return try withConnection { db in
            guard !enforcesForeignKeys else { return try transaction(db, sealing: mark, sealsParts, body, sealed) }
            let enforced = try Bool.fetchOne(db, sql: "PRAGMA foreign_keys") ?? true
            if enforced { try db.execute(sql: "PRAGMA foreign_keys = OFF") }
            defer { if enforced { try? db.execute(sql: "PRAGMA foreign_keys = ON") } }
            return try transaction(db, sealing: mark, sealsParts, body, sealed)
        }
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.readOnly` where the store was opened for reading.
    func requireWritable() throws {
        guard configuration.isReadOnly else { return }
        throw StoreError(.readOnly, "The store was opened read-only.")
    }

    private func transaction<T>(
        _ db: Database, sealing mark: SealMark?, _ sealsParts: Bool, _ body: (Database) throws -> T,
        _ sealed: (Int64?) -> Void
    ) throws -> T {
        var result: T?
        // GRDB's own, which refuses statements after an error that made SQLite roll the transaction back: the body may
        // have caught that.
        try db.inTransaction(.immediate) {
            let seal = try sealStatements(db)
            try SchemaFollower.follow(
                db, using: seal, isBeginning: true, patience: configuration.schemaPatience)
            let previous = try Sealer.newestMark(
                db, sealing: .foreign(author: configuration.foreignAuthor), using: seal)
            result = try body(db)
            if let mark {
                // The body may have changed the schema.
                try SchemaFollower.follow(db, using: seal, patience: configuration.schemaPatience)
                sealed(
                    sealsParts
                        ? try Sealer.seal(db, mark: mark, using: seal)
                        : try Sealer.seal(db, after: previous, mark: mark, using: seal))
            }
            return .commit
        }
        guard let result else { throw StoreError(.sqlite, "The transaction ended without a result.") }
        return result
    }

    // MARK: The connection

    /// Runs `body` with the connection, for which other threads wait meanwhile.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.nestedUse` on a thread that has it already: waiting would
    ///   never end.
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

    /// Runs `body` in one transaction, in which it writes nothing.
    ///
    /// - Throws: as ``withConnection(_:)``.
    package func read<T>(_ body: (Database) throws -> T) throws -> T {
        try withConnection { db in try db.readTransaction { try body(db) } }
    }

    /// Runs `body` in one transaction that the history says nothing of: it writes to Martlet's own tables.
    ///
    /// - Throws: as ``withConnection(_:)``.
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
