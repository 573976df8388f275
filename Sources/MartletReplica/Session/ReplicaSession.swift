import Foundation
package import GRDB
package import MartletCore
package import MartletStore
package import MartletWire
package import Synchronization

/// One connection to a store, with all that syncing keeps in memory about it. Neither triggers nor foreign-key actions
/// run on this connection.
///
/// Every change of rows, clocks, outbox, pending changes and read positions goes through
/// ``transaction(keepsCache:_:)``. Safe to use from any thread; calls wait for each other, and block the calling
/// thread.
package final class ReplicaSession: Sendable {
    package struct Configuration: Sendable {
        /// The node's name for people. Nil: the one that the store has.
        package var name: String?
        package var encoding: WireEncoding
        package var maxClockSkew: Duration
        /// The largest payload of one message, in bytes. Sets the size of the parts that the outbox keeps.
        package var maxMessageBytes: Int
        /// How many clocks of rows without an integer key are collected before they are flushed to their side tables.
        package var recentClocks: Int
        /// How much one SQLite commit enqueues.
        package var enqueueLimits: EnqueueLimits
        /// How long a commit waits for transactions of other processes that have read, and may be about to write.
        package var readerPatience: Duration
        /// The bounds for what comes from other nodes.
        package var limits: SecurityConfiguration

        package init(
            name: String?, encoding: WireEncoding, maxClockSkew: Duration, maxMessageBytes: Int, recentClocks: Int,
            enqueueLimits: EnqueueLimits, readerPatience: Duration, limits: SecurityConfiguration
        ) {
            self.name = name
            self.encoding = encoding
            self.maxClockSkew = maxClockSkew
            self.maxMessageBytes = maxMessageBytes
            self.recentClocks = recentClocks
            self.enqueueLimits = enqueueLimits
            self.readerPatience = readerPatience
            self.limits = limits
        }
    }

    /// What takes turns with other writers. Most callers want ``transaction(keepsCache:_:)`` instead.
    package let connection: WriterConnection
    package let configuration: Configuration
    private let foreignAuthor: String?
    package let schemaPatience: Duration
    /// Waits while a program recreates a table. Tests let the program continue instead.
    package let schemaPauses = Mutex<@Sendable (Duration) -> Void>({ Thread.sleep(forTimeInterval: $0 / .seconds(1)) })
    private let isInterrupted = Atomic(false)
    package let checkpointer: Checkpointer
    package let derived: DerivedWrites
    /// The configured skew in milliseconds, capped at some 30,000 years.
    package let maxClockSkew: Int64
    package let releases = ReleaseWatch()
    /// What was found in recreated tables since the last call of ``takeRebuilt()``.
    private let rebuilt = Mutex(AuditReport())
    private let replacement = Mutex<StoreError?>(nil)
    // Safe because it is only touched on the connection's queue.
    nonisolated(unsafe) let cache = ContextCache()

    /// Opens a file on which a ``/MartletStore/Store`` was opened just before. Gives it a node identity the first time.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the file can't be written, or its node ID is damaged.
    package init(
        opened path: String, store: StoreConfiguration, configuration: Configuration,
        now: @escaping @Sendable () -> Int64, instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws {
        self.configuration = configuration
        maxClockSkew = configuration.maxClockSkew.wholeMilliseconds
        foreignAuthor = store.foreignAuthor
        schemaPatience = store.schemaPatience
        let checkpointer = Checkpointer(path: path, configuration: store, yields: false)
        self.checkpointer = checkpointer
        do {
            let database = try Connection.open(
                path: path, configuration: store, role: .applier, checkpointer: checkpointer)
            derived = try database.inDatabase { try DerivedWrites($0) }
            let node = try database.write { db in
                try SyncSchema.ensure(db, maxMessageBytes: configuration.maxMessageBytes)
                if try Meta.text(db, SyncMeta.node) == nil { try Meta.set(db, SyncMeta.node, UUID().uuidString) }
                if let name = configuration.name { try Meta.set(db, SyncMeta.nodeName, name) }
                if try Cursors.position(db, Cursors.publisher) == nil { try Cursors.set(db, Cursors.publisher, 0) }
                try SchemaFollower.follow(db, patience: store.schemaPatience)
                try DerivedFailure.clear(db)
                try HistoryArrivals.begin(db, at: now())
                guard let id = try Meta.text(db, SyncMeta.node).flatMap(UUID.init(uuidString:)) else {
                    throw StoreError(
                        .corrupt, "The store's node ID is not a UUID.", hint: "Restore the file from a backup.")
                }
                return NodeID(id)
            }
            let others = OtherWriters(path: path)
            connection = WriterConnection(
                path: path, database, node: node,
                readers: ReaderGate(path: path, limit: configuration.readerPatience),
                isAlone: { !others.exist(besides: 1 + checkpointer.connectionCount) }, now: now, instant: instant)
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    /// Waits for the running transaction, and closes the connection. Calls that other threads make afterwards fail.
    package func close() throws {
        database.inDatabase { _ in cache.close() }
        try checkpointer.close()
        try database.close()
    }

    /// Ends calls that wait for a program to recreate a table, or that enqueue a backlog first, now and from now on,
    /// with a `CancellationError`. While the program keeps changing the table, the wait can take minutes. Callable from
    /// any thread.
    package func interrupt() { isInterrupted.store(true, ordering: .relaxed) }

    /// - Throws: `CancellationError` after ``interrupt()``.
    private func checkIsNotInterrupted() throws {
        if isInterrupted.load(ordering: .relaxed) { throw CancellationError() }
    }

    /// Continues under another node ID, which the store has already.
    package func adopt(_ node: NodeID) throws {
        connection.adopt(node)
        try forgetContext()
    }

    /// Returns what was found in tables that programs have recreated since the last call.
    package func takeRebuilt() -> AuditReport {
        rebuilt.withLock { report in
            defer { report = AuditReport() }
            return report
        }
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.copied` once the file was found to be replaced by an older
    ///   state of it. Nothing is read or published after that.
    package func checkIsInPlace() throws {
        if let error = replacement.withLock(\.self) { throw error }
    }

    /// Drops the cache, so that it is read again.
    package func forgetContext() throws {
        try database.write { _ in cache.context = nil }
    }

    /// Starts to copy the write-ahead log into the file, on another thread.
    package func startCheckpoint() throws {
        try mapErrors { database.writeWithoutTransaction { checkpointer.copyRest($0) } }
    }

    /// Runs `body` in one immediate transaction, after everything local was closed and stamped: remote changes are
    /// merged into clocks that include all local ones.
    ///
    /// If there is much to enqueue, earlier transactions take it in slices, and others can write in between.
    /// - Parameter keepsCache: true if the context still matches the file after `body`, which must then change
    ///   positions only through ``ReadProgress``.
    package func transaction<T>(keepsCache: Bool = false, _ body: (Database, ReplicaContext) throws -> T) throws -> T {
        while true {
            let result: T? = try inTurn(keepsCache: keepsCache) { db, context, newest in
                if !keepsCache { context.forgetCached() }
                if newest != context.stamps.through {
                    guard try !enqueueSlice(db, context).hasMore else { return nil }
                }
                guard try settleLocal(db, context) else { return nil }
                let result = try body(db, context)
                try noteClosed(db, context)
                return result
            }
            if let result { return result }
            try checkIsNotInterrupted()
        }
    }

    /// Runs `body` in one immediate transaction of the engine, once other writers have had their turn.
    func inTurn<T>(
        keepsCache: Bool, unless isIdle: (Database) throws -> T? = { _ in nil },
        _ body: (Database, ReplicaContext, _ newest: Int64) throws -> T
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
                    do {
                        let result: T? = try connection.inTurn(db) {
                            guard try isSchemaSettled(db) else { return nil }
                            let (context, newest) = try begin(db)
                            let result = try body(db, context, newest)
                            try finish(db, context)
                            return result
                        }
                        guard let result else { continue }
                        cache.stamped = cache.context?.stamps.through ?? cache.stamped
                        cache.waited = .zero
                        if keepsCache { cache.noteCommit(db) }
                        return result
                    } catch {
                        // The cache may be ahead of the file now.
                        cache.context = nil
                        cache.passedThrough = 0
                        throw error
                    }
                }
            }
        }
    }

    /// The interval at which recreated tables are checked, at first and at most. Each check counts the rows of those
    /// tables, and the rows that they had before.
    private static let schemaPause = (least: Duration.milliseconds(20), most: Duration.milliseconds(200))

    /// Returns once no table seems to be in the middle of being recreated, or those that do have not changed for a
    /// while: a program may drop a table, create it again and fill it in separate transactions. Meanwhile, references
    /// to its rows can't be resolved. Gives up after the longest wait, since all other tables wait, too.
    private func waitForSchema(_ db: Database) throws {
        guard try mayBeChanging(db) else { return }
        var last: [String: Int64?] = [:]
        var quiet = Duration.zero
        var pause = Self.schemaPause.least
        while quiet < schemaPatience, !hasWaitedLongest {
            let found = try db.readTransaction { try RecreatedTables.underWay(db) }
            if found == last {
                quiet += pause
            } else {
                quiet = .zero
                // A program may keep changing the table for hours.
                if !last.isEmpty {
                    pause = max(pause, min(pause * 2, Self.schemaPause.most, schemaPatience / 10))
                }
            }
            last = found
            if found.isEmpty || found == cache.settledTables { break }
            try checkIsNotInterrupted()
            schemaPauses.withLock(\.self)(pause)
            cache.waited += pause
        }
        cache.settledTables = last
    }

    private var hasWaitedLongest: Bool { cache.waited >= RecreatedTables.longestWait(schemaPatience) }

    /// Returns false if a program has begun to recreate a table since the wait. To be called under the write lock.
    private func isSchemaSettled(_ db: Database) throws -> Bool {
        guard try mayBeChanging(db), !hasWaitedLongest else { return true }
        let found = try RecreatedTables.underWay(db)
        return found.isEmpty || found == cache.settledTables
    }

    private func mayBeChanging(_ db: Database) throws -> Bool {
        guard schemaPatience > .zero, cache.dataVersion.map({ $0 != db.dataVersion }) ?? true else { return false }
        guard let context = cache.context else { return try SchemaFollower.hasChanged(db) }
        return try cache.closingStatements(db).currentSchemaVersion() != context.schemaVersion
    }

    /// Follows the schema, and closes the transactions of other programs in the log.
    ///
    /// - Returns: the context, and the newest transaction mark.
    private func begin(_ db: Database) throws -> (context: ReplicaContext, newest: Int64) {
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
            cache.context?.forgetCached()
        }
        let newest = try TransactionCloser.newestMark(
            db, closingWith: TransactionMark(author: foreignAuthor), using: closing)
        let context =
            try cache.context
            ?? ReplicaContext(
                db, now: now, derived: derived, maxClockSkew: maxClockSkew, closing: closing, releases: releases)
        if cache.context == nil {
            // What rows of these tables left behind is unknown, and a dangling reference may have referred to one of
            // them. While such a table was gone, its rows could lose their targets unnoticed.
            let unseen = try SchemaFollower.takeUnseenTables(db)
            let targets = unseen.flatMap { context.catalog[$0]?.foreignKeys ?? [] }.map(\.target)
            for id in Set(unseen + targets.compactMap { context.catalog[$0]?.id }).sorted() {
                guard let entity = context.catalog[id] else { continue }
                context.noteLeft(entity, RemovedTarget())
                for row in try Applier(db, context).danglingKeys(entity) {
                    context.noteLeft(entity, RemovedTarget(row: row))
                }
            }
            try context.left.keep(db)
        }
        cache.context = context
        // If nobody else has written since, there are no notes.
        if !isUnchanged { try DisplacedRows.dropNotes(db, context.statement) }
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

    /// Ends each transaction that is committed.
    private func finish(_ db: Database, _ context: ReplicaContext) throws {
        try context.recent.finish(db, flushingFrom: configuration.recentClocks, context.notes)
        try context.notes.write(db)
    }

    /// After how many rows of history the publisher's cursor moves past remote transactions.
    private static let passEach: Int64 = 1000

    /// Marks the transactions that the applier closed as stamped, since they have their clocks. Once, at the end of the
    /// SQLite transaction.
    func noteClosed(_ db: Database, _ context: ReplicaContext) throws {
        guard let id = context.applied.takeClosed() else { return }
        context.stamps.advance(through: id)
        guard id - cache.passedThrough >= Self.passEach else { return }
        // The cursor's position depends on what is stamped.
        try context.notes.write(db)
        try PublishProgress.placeCursor(db)
        cache.passedThrough = id
    }
}
