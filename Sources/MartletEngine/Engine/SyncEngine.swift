import Foundation
package import GRDB
package import MartletCore
package import MartletReplica
public import MartletStore
public import MartletWire
package import Synchronization

/// One node's side of syncing: enqueues local transactions for publishing, and applies remote ones.
///
/// Has a connection of its own to the store's file, on which neither triggers nor foreign-key actions run. Safe to use
/// from any thread; calls wait for each other, and block the calling thread.
public final class SyncEngine: Sendable {
    public let configuration: SyncConfiguration
    /// Path of the store's file.
    public let path: String
    /// This node's ID. ``fork(as:)`` changes it.
    public var node: NodeID { currentNode.withLock { $0 } }
    package let currentNode: Mutex<NodeID>
    private let foreignAuthor: String?
    package let schemaPatience: Duration
    /// Waits while a program recreates a table. Tests let the program continue instead.
    package let schemaPauses = Mutex<@Sendable (Duration) -> Void>({ Thread.sleep(forTimeInterval: $0 / .seconds(1)) })
    package let database: DatabaseQueue
    package let checkpointer: Checkpointer
    package let derived: DerivedWrites
    /// The configured skew in milliseconds, capped at some 30,000 years.
    package let maxClockSkew: Int64
    /// Wall clock, in milliseconds since 1970.
    package let now: @Sendable () -> Int64
    /// Clock for intervals.
    package let instant: @Sendable () -> ContinuousClock.Instant
    /// False once it is known that no transaction waits for its time.
    package let mayHaveDeferred = Atomic(true)
    /// True if something was refused because it arrived after the garbage collection of tombstones: its author should
    /// be told.
    package let hasRefused = Atomic(false)
    /// How many rows of snapshots were left out since the start, because this node may have collected their tombstones.
    package let rowsLeftOut = Atomic(0)
    /// How far the topic was compared with this node's own transactions.
    let compared = Mutex(ComparedMessages())
    /// True if this node waits for a snapshot, and there was none to load when the consumer last looked.
    let lacksSnapshot = Atomic(false)
    /// How often a snapshot has moved offsets. A reader that continues from before must look up its offsets again.
    package let offsetLeaps = Atomic(0)
    /// What was found in recreated tables since the last call of ``takeRebuilt()``.
    private let rebuilt = Mutex(AuditReport())
    /// Set once the file was replaced by an older state of it. Nothing is read or published after that.
    package let replacement = Mutex<StoreError?>(nil)
    package let messageGuard: MessageGuard
    /// The last key ring that was tried on everything that is quarantined for a missing key.
    package let triedKeyRing = Atomic(-1)
    // Safe because the box is only touched on the connection's queue.
    nonisolated(unsafe) private let cache: ContextBox

    private final class ContextBox {
        var context: EngineContext?
        var turns = WriterTurns()
        var readers: ReaderGate
        var closing: ClosingStatements?
        /// True once the engine begins to release its statements, so that nobody compiles new ones before the
        /// connection is closed: SQLite doesn't close a connection that has any.
        var isClosed = false
        /// The data version after the last commit at which the context matched the file. Nil if the file must be
        /// checked.
        var dataVersion: UInt32?
        /// The state of tables that were being recreated, and are no longer waited for.
        var settledTables: [String: Int64?] = [:]
        /// The change up to which everything had its clocks at the last commit. This goes back only if somebody puts an
        /// older file in place.
        var stamped: Int64 = 0

        init(_ readers: ReaderGate) { self.readers = readers }

        /// Waits until other writers have had their turn.
        func waitForOthers(_ now: () -> ContinuousClock.Instant) {
            turns.wait(now: now)
            readers.wait(now: now)
        }

        /// To be called right after a commit of this connection: no one else's commit can have been seen since.
        func noteCommit(_ db: Database) {
            dataVersion = context?.hasChangedSchema ?? true ? nil : db.dataVersion
        }

        func closingStatements(_ db: Database) throws -> ClosingStatements {
            if let closing { return closing }
            guard !isClosed else { throw StoreError(.sqlite, "The engine is closed.") }
            let closing = try ClosingStatements(db)
            self.closing = closing
            return closing
        }

        func close() {
            isClosed = true
            context = nil
            closing = nil
        }
    }

    /// Opens the store for syncing. Gives it a node identity the first time.
    ///
    /// - Parameters:
    ///   - now: the wall clock, in milliseconds since 1970.
    ///   - instant: the clock by which this engine's publisher and consumer measure intervals.
    /// - Throws: ``/MartletCore/StoreError`` if the file is no store, is newer, or can't be written, or if the
    ///   configuration is wrong; also whatever the source of keys throws.
    public convenience init(
        path: String, store: StoreConfiguration = .init(), configuration: SyncConfiguration = .init(),
        security: MessageSecurity = .init(),
        now: @escaping @Sendable () -> Int64 = { WallClock.milliseconds },
        instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws {
        // Opening checks the format, follows the schema, and closes open transactions in the log.
        let opened = try Store(path: path, configuration: store)
        try opened.close()
        try self.init(
            opened: path, store: store, configuration: configuration, security: security, now: now, instant: instant)
    }

    /// Checks whether an engine can be made with this configuration, as far as that doesn't depend on the store.
    package static func check(_ configuration: SyncConfiguration, _ security: MessageSecurity) throws {
        _ = try messageGuard(configuration, security)
    }

    private static func messageGuard(
        _ configuration: SyncConfiguration, _ security: MessageSecurity
    ) throws -> MessageGuard {
        let problems = configuration.validate()
        guard problems.isEmpty else {
            throw StoreError(.invalidArgument, "Invalid sync configuration: \(problems.joined(separator: "; ")).")
        }
        // A message that the node itself can't read back counts as lost, and would be republished again and again.
        guard security.configuration.maxMessageBytes >= configuration.maxMessageBytes else {
            throw StoreError(
                .invalidArgument,
                """
                The node would refuse its own messages: security.limits.maxMessageBytes \
                (\(security.configuration.maxMessageBytes)) is below sync.maxMessageBytes \
                (\(configuration.maxMessageBytes)).
                """
            )
        }
        return try MessageGuard(security)
    }

    /// The same for a file on which a ``/MartletStore/Store`` was opened just before.
    package init(
        opened path: String, store: StoreConfiguration, configuration: SyncConfiguration,
        security: MessageSecurity = .init(), now: @escaping @Sendable () -> Int64,
        instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws {
        messageGuard = try Self.messageGuard(configuration, security)
        self.configuration = configuration
        maxClockSkew = Int64(min(configuration.maxClockSkew / .milliseconds(1), 1e15))
        self.path = path
        cache = ContextBox(ReaderGate(path: path, limit: configuration.readerPatience))
        self.now = now
        self.instant = instant
        foreignAuthor = store.foreignAuthor
        schemaPatience = store.schemaPatience
        checkpointer = Checkpointer(path: path, configuration: store, yields: false)
        do {
            database = try Connection.open(
                path: path, configuration: store, role: .applier, checkpointer: checkpointer)
            derived = try database.inDatabase { try DerivedWrites($0) }
            let node = try database.write { db in
                try SyncSchema.ensure(db, maxMessageBytes: configuration.maxMessageBytes)
                if try Meta.text(db, SyncMeta.node) == nil { try Meta.set(db, SyncMeta.node, UUID().uuidString) }
                if let name = configuration.name { try Meta.set(db, SyncMeta.nodeName, name) }
                if try Cursors.position(db, Cursors.publisher) == nil { try Cursors.set(db, Cursors.publisher, 0) }
                try SchemaFollower.follow(db, patience: store.schemaPatience)
                try DerivedFailure.clear(db)
                guard let id = try Meta.text(db, SyncMeta.node).flatMap(UUID.init(uuidString:)) else {
                    throw StoreError(
                        .corrupt, "The store's node ID is not a UUID.", hint: "Restore the file from a backup.")
                }
                return NodeID(id)
            }
            guard security.signingKey != nil || security.configuration.origins?[node.uuid]?.isEmpty ?? true else {
                throw StoreError(
                    .invalidArgument, "security.origins lists a public key of this node, which has no signing key.",
                    hint: "Set security.signingKeyFile, or remove this node from the list: it need not be listed.")
            }
            currentNode = Mutex(node)
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
        try adoptFilters()
    }

    /// Waits for the running transaction, and closes the connection. Calls that other threads make afterwards fail.
    public func close() throws {
        database.inDatabase { _ in cache.close() }
        try checkpointer.close()
        try database.close()
    }

    /// Returns the names of tables and columns that now stand for different ones than before.
    public func reusedNames() throws -> [ReusedName] {
        try read { try Catalog.load($0).reusedNames }
    }

    /// Returns what was found in tables that programs have recreated since the last call.
    package func takeRebuilt() -> AuditReport {
        rebuilt.withLock { report in
            defer { report = AuditReport() }
            return report
        }
    }

    /// Returns true if the store's path leads to another file than the one that this engine has open, or to none.
    package func hasMoved() throws -> Bool { try read(\.hasMoved) }

    /// See ``/MartletStore/Store/lostEntities()``.
    package func lostEntities() throws -> [LostEntity] { try read(LostEntity.all) }

    /// Drops the cache, so that it is read again.
    package func forgetContext() throws {
        try database.write { _ in cache.context = nil }
    }

    /// Runs `body` in one immediate transaction, after everything local was closed and stamped: remote changes are
    /// merged into clocks that include all local ones.
    ///
    /// If there is much to enqueue, earlier transactions take it in slices, and others can write in between.
    /// - Parameter keepsCache: true if the context still matches the file after `body`, which must then change
    ///   positions only through ``Receiver``.
    package func transaction<T>(keepsCache: Bool = false, _ body: (Database, EngineContext) throws -> T) throws -> T {
        while true {
            let result: T? = try inTurn(keepsCache: keepsCache) { db, context, newest in
                if !keepsCache { context.positions.forget() }
                if newest != context.stamped {
                    guard try !enqueueSlice(db, context).hasMore else { return nil }
                }
                guard try settleLocal(db, context) else { return nil }
                let result = try body(db, context)
                try noteClosed(db, context)
                return result
            }
            if let result { return result }
        }
    }

    /// Runs `body` in one immediate transaction of the engine, once other writers have had their turn.
    private func inTurn<T>(
        keepsCache: Bool, unless isIdle: (Database) throws -> T? = { _ in nil },
        _ body: (Database, EngineContext, _ newest: Int64) throws -> T
    ) throws -> T {
        try mapErrors {
            try database.writeWithoutTransaction { db in
                if let result = try isIdle(db) { return result }
                while true {
                    try waitForSchema(db)
                    if cache.dataVersion.map({ $0 != db.dataVersion }) ?? true {
                        let closing = try cache.closingStatements(db)
                        try db.readTransaction { try closing.lookAhead() }
                    }
                    cache.waitForOthers(instant)
                    defer { cache.turns.end(at: instant()) }
                    do {
                        let result: T? = try db.immediateTransaction {
                            cache.turns.begin(at: instant())
                            guard try isSchemaSettled(db) else { return nil }
                            let (context, newest) = try begin(db)
                            let result = try body(db, context, newest)
                            try finish(db, context)
                            return result
                        }
                        guard let result else { continue }
                        cache.stamped = cache.context?.stamped ?? cache.stamped
                        if keepsCache { cache.noteCommit(db) }
                        return result
                    } catch {
                        // The cache may be ahead of the file now.
                        cache.context = nil
                        throw error
                    }
                }
            }
        }
    }

    /// The interval at which recreated tables are checked.
    private static let schemaPause = Duration.milliseconds(20)

    /// Returns once no table seems to be in the middle of being recreated, or those that do have not changed for a
    /// while: a program may drop a table, create it again and fill it in separate transactions. Meanwhile, references
    /// to its rows can't be resolved.
    private func waitForSchema(_ db: Database) throws {
        guard try mayBeChanging(db) else { return }
        var last: [String: Int64?] = [:]
        var quiet = Duration.zero
        while quiet < schemaPatience {
            let found = try db.readTransaction { try RemadeTables.underWay(db) }
            quiet = found == last ? quiet + Self.schemaPause : .zero
            last = found
            if found.isEmpty || found == cache.settledTables { break }
            schemaPauses.withLock(\.self)(Self.schemaPause)
        }
        cache.settledTables = last
    }

    /// Returns false if a program has begun to recreate a table since the wait. To be called under the write lock.
    private func isSchemaSettled(_ db: Database) throws -> Bool {
        guard try mayBeChanging(db) else { return true }
        let found = try RemadeTables.underWay(db)
        return found.isEmpty || found == cache.settledTables
    }

    private func mayBeChanging(_ db: Database) throws -> Bool {
        guard schemaPatience > .zero, cache.dataVersion.map({ $0 != db.dataVersion }) ?? true else { return false }
        guard let context = cache.context else { return try SchemaFollower.hasChanged(db) }
        return try cache.closingStatements(db).currentSchemaVersion() != context.schemaVersion
    }

    /// Runs `body` in one immediate transaction that leaves rows, clocks and messages alone, once other writers have
    /// had their turn.
    package func write<T>(_ body: (Database) throws -> T) throws -> T {
        try mapErrors {
            try database.writeWithoutTransaction { db in
                cache.waitForOthers(instant)
                defer { cache.turns.end(at: instant()) }
                return try db.immediateTransaction {
                    cache.turns.begin(at: instant())
                    return try body(db)
                }
            }
        }
    }

    /// Follows the schema, and closes the transactions of other programs in the log.
    ///
    /// - Returns: the context, and the newest transaction mark.
    private func begin(_ db: Database) throws -> (context: EngineContext, newest: Int64) {
        let closing = try cache.closingStatements(db)
        let isUnchanged = cache.dataVersion.map { $0 == db.dataVersion } ?? false
        cache.dataVersion = nil
        if !isUnchanged { try checkIsNotReplaced(db) }
        if !isUnchanged || cache.context == nil {
            let found = try SchemaFollower.follow(db, using: closing, isBeginning: true, patience: .zero)
            if !found.isClean { rebuilt.withLock { $0.add(found) } }
            let version = try closing.currentSchemaVersion()
            if let context = cache.context, try context.schemaVersion != version || !context.recent.isCurrent() {
                cache.context = nil
            }
            cache.context?.positions.forget()
        }
        let newest = try TransactionCloser.newestMark(
            db, closingWith: TransactionMark(author: foreignAuthor), using: closing)
        let context = try cache.context ?? EngineContext(db, now: now, derived: derived, maxClockSkew: maxClockSkew)
        if cache.context == nil {
            // What rows of these tables left behind is unknown, and a dangling reference may have referred to one of
            // them.
            for id in try SchemaFollower.takeUnseenTables(db) {
                guard let entity = context.catalog[id] else { continue }
                context.noteLeft(entity, LeftRow())
                for row in try Applier(db, context).danglingKeys(entity) { context.noteLeft(entity, LeftRow(row: row)) }
            }
            try context.left.keep(db)
        }
        cache.context = context
        // If nobody else has written since, there are no notes.
        if !isUnchanged { try context.dropNotes(db) }
        return (context, newest)
    }

    /// The cache is newer than an older state of the file, and must not be written into it.
    private func checkIsNotReplaced(_ db: Database) throws {
        guard try Meta.integer(db, MetaKey.stamped) ?? 0 < cache.stamped else { return }
        let error = StoreError(
            .copied, "\(path) was replaced by an older version while it was being synced. Nothing was changed.",
            hint: "Start the agent again: it compares the store with the topic and reports what to do.")
        replacement.withLock { $0 = error }
        throw error
    }

    /// After how many rows of history the publisher's cursor moves past remote transactions.
    private static let passEach: Int64 = 1000

    /// Enqueues local transactions, as many as one commit takes, the last one possibly in part.
    ///
    /// - Returns: whether there may be more, and the entries that were added to the outbox, or the first of them.
    package func enqueueSome() throws -> (hasMore: Bool, entries: [OutboxEntry]) {
        try inTurn(
            keepsCache: true,
            unless: { _ in try hasNothingToEnqueue() ? (false, []) : nil },
            { db, context, _ in
                let progress = try enqueueSlice(db, context)
                let isDone = try !progress.hasMore && settleLocal(db, context)
                try noteClosed(db, context)
                return (!isDone, progress.handed)
            })
    }

    /// If there is nothing to do, this costs two reads and no write lock. A changed schema counts as work, since
    /// changes that wait for it may apply now.
    private func hasNothingToEnqueue() throws -> Bool {
        guard let context = cache.context, let closing = cache.closing, let stamped = context.stamped,
            context.left.isEmpty, try closing.currentSchemaVersion() == context.schemaVersion
        else { return false }
        return try closing.newest().map { $0.entity == 0 && $0.id == stamped } ?? true
    }

    private func enqueueSlice(_ db: Database, _ context: EngineContext) throws -> Enqueuer.Progress {
        let enqueuer = Enqueuer(db: db, context: context, encoding: configuration.encoding)
        let progress = try enqueuer.run(EnqueueSlice(configuration.enqueueLimits, instant: instant))
        guard progress.hasMore, context.hasNews else { return progress }
        // Changes that wait for these ones continue when all local changes have their clocks. A crash must not lose
        // that.
        try context.noteUnsettled(db)
        try context.left.keep(db)
        try Applier(db, context).dropIdleArrivals()
        return progress
    }

    /// Enqueues the rest of a transaction that is enqueued in part.
    package func finishOpenTransaction() throws {
        var limits = configuration.enqueueLimits
        limits.transactions = 1
        while try read(OpenTransaction.exists) {
            try inTurn(keepsCache: false) { (db, context, _) -> Void in
                let enqueuer = Enqueuer(db: db, context: context, encoding: configuration.encoding)
                _ = try enqueuer.run(EnqueueSlice(limits, instant: instant))
                if context.hasNews { try context.noteUnsettled(db) }
                try context.left.keep(db)
            }
        }
    }

    /// Applies pending changes that a local change, or a schema change, has unblocked. Rows that refer to rows which
    /// local changes removed become pending. A commit takes a slice of these.
    ///
    /// - Returns: false if there is more.
    private func settleLocal(_ db: Database, _ context: EngineContext) throws -> Bool {
        if !context.hasRetriedUnknown {
            context.hasRetriedUnknown = true
            try retryUnknown(db, context)
        }
        guard context.hasNews || context.unsettled != .nothing else { return true }
        let applier = Applier(db, context)
        var slice = EnqueueSlice(configuration.enqueueLimits, instant: instant)
        var hasMore = true
        while hasMore, slice.hasRoomWithin {
            let part = try context.left.take(db, limit: slice.partRows)
            try applier.adopt(part.left)
            if !part.hasMore, context.unsettled == .unknown { try applier.retryAll() }
            try applier.settle()
            for _ in 0..<slice.partRows { slice.note(0) }
            hasMore = part.hasMore
        }
        if hasMore {
            try context.noteUnsettled(db)
        } else {
            try context.noteSettled(db)
        }
        try closeTransaction(db, context, mark: TransactionMark(author: TransactionAuthor.sync, context: "settle"))
        try noteClosed(db, context)
        return !hasMore
    }

    /// Ends each transaction that is committed.
    private func finish(_ db: Database, _ context: EngineContext) throws {
        try context.recent.finish(db, foldingFrom: configuration.recentClocks, context.notes)
        try context.notes.write(db)
    }

    /// Marks the transactions that the applier closed as stamped, since they have their clocks. Once, at the end of the
    /// SQLite transaction.
    private func noteClosed(_ db: Database, _ context: EngineContext) throws {
        // What is still open is closed by the next transaction, which looks for it.
        context.unclosed = nil
        guard let id = context.closedThrough else { return }
        context.noteStamped(id)
        context.closedThrough = nil
        guard id - context.passedThrough >= Self.passEach else { return }
        // The cursor's position depends on what is stamped.
        try context.notes.write(db)
        try placePublisherCursor(db)
        context.passedThrough = id
    }

    /// Closes the transaction that the applier logged.
    package func closeTransaction(_ db: Database, _ context: EngineContext, mark: TransactionMark) throws {
        guard let unclosed = context.unclosed else { return }
        context.closedThrough = try TransactionCloser.close(
            db, from: unclosed.first, time: unclosed.time, mark: mark, using: cache.closingStatements(db))
        context.unclosed = nil
    }
}
