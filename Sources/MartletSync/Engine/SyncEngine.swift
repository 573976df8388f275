import Foundation
import GRDB
public import MartletStore
import Synchronization

/// One node's side of syncing: registers local transactions for publishing, and applies remote ones.
///
/// Has a connection of its own to the store's file, on which neither triggers nor foreign-key actions run. Safe to use
/// from any thread; calls wait for each other, and block the calling thread.
public final class SyncEngine: Sendable {
    public let configuration: SyncConfiguration
    /// The store's file.
    public let path: String
    /// This node. Another one after ``fork(as:)``.
    public var node: NodeID { currentNode.withLock { $0 } }
    let currentNode: Mutex<NodeID>
    private let foreignAuthor: String?
    let schemaPatience: Duration
    /// Lets time pass while a program makes a table anew. Tests let the program go on instead.
    let schemaPauses = Mutex<@Sendable (Duration) -> Void>({ Thread.sleep(forTimeInterval: $0 / .seconds(1)) })
    let database: DatabaseQueue
    let checkpointer: Checkpointer
    let derived: DerivedWrites
    /// That of the configuration in milliseconds, at most some 30,000 years.
    let maxClockSkew: Int64
    /// Milliseconds since 1970.
    let now: @Sendable () -> Int64
    /// For intervals.
    let instant: @Sendable () -> ContinuousClock.Instant
    /// False once it is known that nothing waits for its time.
    let mayHaveDeferred = Atomic(true)
    /// True where something was refused that came after tombstones were collected: its author should hear of that.
    let hasRefused = Atomic(false)
    /// How many rows of snapshots were left out since the start, since their deletes may be forgotten here.
    let rowsLeftOut = Atomic(0)
    /// How often a snapshot has moved offsets. Whoever reads on from before must look anew where to.
    let offsetLeaps = Atomic(0)
    /// What was found of tables that programs have made anew since the last call of ``takeRebuilt()``.
    private let rebuilt = Mutex(AuditReport())
    /// Set once the file was replaced by an older state of it. Nothing is read or published any more then.
    let replacement = Mutex<StoreError?>(nil)
    let messageGuard: MessageGuard
    /// The last key ring with which all was tried that is quarantined for a missing key.
    let triedKeyRing = Atomic(-1)
    // Safe because the box is only touched on the connection's queue.
    nonisolated(unsafe) private let cache: ContextBox

    private final class ContextBox {
        var context: EngineContext?
        var turns = WriterTurns()
        var readers: ReaderGate
        var seal: SealStatements?
        /// True from the moment on in which the engine lets go of its statements, so that nobody compiles others before
        /// the connection is closed: SQLite closes none that has any.
        var isClosed = false
        /// That of the last commit after which the context says what the file does. Nil where it has to be looked.
        var dataVersion: UInt32?
        /// What has become of tables that were being made anew, and is not waited for any more.
        var settledTables: [String: Int64?] = [:]
        /// Up to which change the last commit says that all have their clocks. It only goes back when somebody puts an
        /// older file in place.
        var registered: Int64 = 0

        init(_ readers: ReaderGate) { self.readers = readers }

        /// Waits until others have had their turn.
        func waitForOthers(_ now: () -> ContinuousClock.Instant) {
            turns.wait(now: now)
            readers.wait(now: now)
        }

        /// Just after a commit of this connection: nobody else's can have been seen since.
        func noteCommit(_ db: Database) {
            dataVersion = context?.hasChangedSchema ?? true ? nil : db.dataVersion
        }

        func sealStatements(_ db: Database) throws -> SealStatements {
            if let seal { return seal }
            guard !isClosed else { throw StoreError(.sqlite, "The engine is closed.") }
            let seal = try SealStatements(db)
            self.seal = seal
            return seal
        }

        func close() {
            isClosed = true
            context = nil
            seal = nil
        }
    }

    /// Opens the store for syncing. Gives it a node identity the first time.
    ///
    /// - Parameters:
    ///   - now: the wall clock, in milliseconds since 1970.
    ///   - instant: the clock by which publisher and consumer of this engine measure intervals.
    /// - Throws: ``/MartletCore/StoreError`` when the file is no store, is newer, can't be written, or the
    ///   configuration is wrong; what the source of keys throws.
    public convenience init(
        path: String, store: StoreConfiguration = .init(), configuration: SyncConfiguration = .init(),
        security: MessageSecurity = .init(),
        now: @escaping @Sendable () -> Int64 = { WallClock.milliseconds },
        instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws {
        // Opening checks the format, follows the schema and seals.
        let opened = try Store(path: path, configuration: store)
        try opened.close()
        try self.init(
            opened: path, store: store, configuration: configuration, security: security, now: now, instant: instant)
    }

    /// Whether an engine can be made with these, as far as the store is not needed to know it.
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
        // What a node can't read back itself counts as lost, and would be sent again and again.
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

    /// The same for a file that a ``/MartletStore/Store`` was opened on just before.
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

    /// Waits for the transaction under way, and closes the connection. What other threads begin afterwards fails.
    public func close() throws {
        database.inDatabase { _ in cache.close() }
        try checkpointer.close()
        try database.close()
    }

    /// The names of tables and columns that mean others than they did before.
    public func reusedNames() throws -> [ReusedName] {
        try read { try Catalog.load($0).reusedNames }
    }

    /// What was found of tables that programs have made anew since the last call.
    package func takeRebuilt() -> AuditReport {
        rebuilt.withLock { report in
            defer { report = AuditReport() }
            return report
        }
    }

    /// True where the store's path leads to another file than this engine has open, or to none.
    package func hasMoved() throws -> Bool { try read(\.hasMoved) }

    /// As ``/MartletStore/Store/lostEntities()``.
    package func lostEntities() throws -> [LostEntity] { try read(LostEntity.all) }

    /// Makes what is cached be read anew.
    func forgetContext() throws {
        try database.write { _ in cache.context = nil }
    }

    /// Runs `body` in one immediate transaction, with everything local sealed and registered before: remote changes are
    /// merged into clocks that know all local ones.
    ///
    /// Where much is to be registered, transactions before that one take it in slices, between which others write.
    /// - Parameter keepsCache: whether what the context knows of the file is still so after `body`: it changes
    ///   positions by ``Receiver`` alone.
    func transaction<T>(keepsCache: Bool = false, _ body: (Database, EngineContext) throws -> T) throws -> T {
        while true {
            let result: T? = try inTurn(keepsCache: keepsCache) { db, context, newest in
                if !keepsCache { context.positions.forget() }
                if newest != context.registered {
                    guard try !registerSlice(db, context).hasMore else { return nil }
                }
                guard try settleLocal(db, context) else { return nil }
                let result = try body(db, context)
                try noteSealed(db, context)
                return result
            }
            if let result { return result }
        }
    }

    /// Runs `body` in one immediate transaction of the engine, once others had their turn to write.
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
                        let seal = try cache.sealStatements(db)
                        try db.readTransaction { try seal.lookAhead() }
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
                        cache.registered = cache.context?.registered ?? cache.registered
                        if keepsCache { cache.noteCommit(db) }
                        return result
                    } catch {
                        // What was cached may be ahead of the file now.
                        cache.context = nil
                        throw error
                    }
                }
            }
        }
    }

    /// How often tables that are being made anew are looked at.
    private static let schemaPause = Duration.milliseconds(20)

    /// Returns once no table seems to be in the middle of being made anew, or those that do have stayed as they are for
    /// a while: a program may drop a table, make it again and fill it in transactions of its own. What refers to its
    /// rows is not understood meanwhile.
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

    /// False where a program has begun to make a table anew since that was waited for. Asked under the write lock.
    private func isSchemaSettled(_ db: Database) throws -> Bool {
        guard try mayBeChanging(db) else { return true }
        let found = try RemadeTables.underWay(db)
        return found.isEmpty || found == cache.settledTables
    }

    private func mayBeChanging(_ db: Database) throws -> Bool {
        guard schemaPatience > .zero, cache.dataVersion.map({ $0 != db.dataVersion }) ?? true else { return false }
        guard let context = cache.context else { return try SchemaFollower.hasChanged(db) }
        return try cache.sealStatements(db).currentSchemaVersion() != context.schemaVersion
    }

    /// Runs `body` in one immediate transaction that leaves rows, clocks and messages alone, once others had their turn
    /// to write.
    func write<T>(_ body: (Database) throws -> T) throws -> T {
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

    /// Follows the schema, and seals what other programs committed.
    ///
    /// - Returns: the context, and the newest transaction mark.
    private func begin(_ db: Database) throws -> (context: EngineContext, newest: Int64) {
        let seal = try cache.sealStatements(db)
        let isUnchanged = cache.dataVersion.map { $0 == db.dataVersion } ?? false
        cache.dataVersion = nil
        if !isUnchanged { try checkIsNotReplaced(db) }
        if !isUnchanged || cache.context == nil {
            let found = try SchemaFollower.follow(db, using: seal, isBeginning: true, patience: .zero)
            if !found.isClean { rebuilt.withLock { $0.add(found) } }
            let version = try seal.currentSchemaVersion()
            if let context = cache.context, try context.schemaVersion != version || !context.recent.isCurrent() {
                cache.context = nil
            }
            cache.context?.positions.forget()
        }
        let newest = try Sealer.newestMark(db, sealing: SealMark(author: foreignAuthor), using: seal)
        let context = try cache.context ?? EngineContext(db, now: now, derived: derived, maxClockSkew: maxClockSkew)
        if cache.context == nil {
            // What their rows left is not known, and what refers to nothing may have referred to that.
            for id in try SchemaFollower.takeUnseenTables(db) {
                guard let entity = context.catalog[id] else { continue }
                context.noteLeft(entity, LeftRow())
                for row in try Applier(db, context).danglingKeys(entity) { context.noteLeft(entity, LeftRow(row: row)) }
            }
            try context.left.keep(db)
        }
        cache.context = context
        // Where nobody has written since, there are none.
        if !isUnchanged { try context.dropNotes(db) }
        return (context, newest)
    }

    /// What is known in memory is newer than an older state of the file, and must not be written into it.
    private func checkIsNotReplaced(_ db: Database) throws {
        guard try Meta.integer(db, MetaKey.registered) ?? 0 < cache.registered else { return }
        let error = StoreError(
            .copied, "\(path) was replaced by an older version while it was being synced. Nothing was changed.",
            hint: "Start the agent again: it compares the store with the topic and reports what to do.")
        replacement.withLock { $0 = error }
        throw error
    }

    /// After how many rows of history the publisher's cursor follows what comes from other nodes.
    private static let passEach: Int64 = 1000

    /// Registers local transactions, as many as one commit takes; the last of them perhaps in part.
    ///
    /// - Returns: whether there may be more, and what came to the outbox, or the first of it.
    func registerSome() throws -> (hasMore: Bool, entries: [OutboxEntry]) {
        try inTurn(
            keepsCache: true,
            unless: { _ in try hasNothingToRegister() ? (false, []) : nil },
            { db, context, _ in
                let progress = try registerSlice(db, context)
                let isDone = try !progress.hasMore && settleLocal(db, context)
                try noteSealed(db, context)
                return (!isDone, progress.handed)
            })
    }

    /// Nothing to do costs two reads, and no write lock. A changed schema may let go on what waits for it.
    private func hasNothingToRegister() throws -> Bool {
        guard let context = cache.context, let seal = cache.seal, let registered = context.registered,
            context.left.isEmpty, try seal.currentSchemaVersion() == context.schemaVersion
        else { return false }
        return try seal.newest().map { $0.entity == 0 && $0.id == registered } ?? true
    }

    private func registerSlice(_ db: Database, _ context: EngineContext) throws -> Registrar.Progress {
        let registrar = Registrar(db: db, context: context, encoding: configuration.encoding)
        let progress = try registrar.run(EnqueueSlice(configuration.enqueueLimits, instant: instant))
        guard progress.hasMore, context.hasNews else { return progress }
        // What waits for these changes goes on when all local ones have their clocks. A crash must not forget it.
        try context.noteUnsettled(db)
        try context.left.keep(db)
        try Applier(db, context).dropIdleArrivals()
        return progress
    }

    /// Registers the rest of a transaction of which a part is registered.
    func finishOpenTransaction() throws {
        var limits = configuration.enqueueLimits
        limits.transactions = 1
        while try read(OpenTransaction.exists) {
            try inTurn(keepsCache: false) { (db, context, _) -> Void in
                let registrar = Registrar(db: db, context: context, encoding: configuration.encoding)
                _ = try registrar.run(EnqueueSlice(limits, instant: instant))
                if context.hasNews { try context.noteUnsettled(db) }
                try context.left.keep(db)
            }
        }
    }

    /// Lets go on what waited for something that a local change brought, or a change of the schema, and has wait what
    /// refers to rows that local changes have taken away. A commit takes a slice of these.
    ///
    /// - Returns: false where there is more.
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
        } else if context.unsettled != .nothing {
            try db.execute(sql: "DELETE FROM \(InternalName.meta) WHERE key = ?", arguments: [SyncMeta.unsettled])
            context.unsettled = .nothing
        }
        try seal(db, context, mark: SealMark(author: TransactionAuthor.sync, context: "settle"))
        try noteSealed(db, context)
        return !hasMore
    }

    /// The end of each transaction that is committed.
    private func finish(_ db: Database, _ context: EngineContext) throws {
        try context.recent.finish(db, foldingFrom: configuration.recentClocks, context.notes)
        try context.notes.write(db)
    }

    /// Marks what the applier sealed as registered: it has its clocks. Once, at the end of the SQLite transaction.
    private func noteSealed(_ db: Database, _ context: EngineContext) throws {
        // What is left unsealed is sealed by the next transaction, which looks for it.
        context.unsealed = nil
        guard let id = context.sealedThrough else { return }
        context.noteRegistered(id)
        context.sealedThrough = nil
        guard id - context.passedThrough >= Self.passEach else { return }
        // It looks at what is registered.
        try context.notes.write(db)
        try placePublisherCursor(db)
        context.passedThrough = id
    }

    /// Seals what the applier logged.
    func seal(_ db: Database, _ context: EngineContext, mark: SealMark) throws {
        guard let unsealed = context.unsealed else { return }
        context.sealedThrough = try Sealer.seal(
            db, from: unsealed.first, time: unsealed.time, mark: mark, using: cache.sealStatements(db))
        context.unsealed = nil
    }
}
