public import Foundation
import GRDB
public import MartletBus
public import MartletCore
package import MartletReplica
public import MartletStore
public import MartletWire

/// One node's side of syncing: enqueues local transactions for publishing, and applies remote ones.
///
/// Has a connection of its own to the store's file, on which neither triggers nor foreign-key actions run. Safe to use
/// from any thread; calls wait for each other, and block the calling thread.
public final class SyncEngine: Sendable {
    public let configuration: SyncConfiguration
    /// The connection to the store, and what is kept in memory about it.
    package let session: ReplicaSession
    package let messageGuard: MessageGuard
    /// What receivers of messages share.
    package let inbound: Inbound
    package let late = LateTransactions()
    package let snapshots = SnapshotState()
    /// How far the topic was compared with this node's own transactions.
    let compared = ComparedMessages()
    private let historyGauge = HistoryGauge()
    private let conflictRetention: ConflictRetention

    /// Path of the store's file.
    public var path: String { session.path }
    /// This node's ID. ``fork(as:)`` changes it.
    public var node: NodeID { session.node }
    /// Wall clock, in milliseconds since 1970.
    package var now: @Sendable () -> Int64 { session.now }
    /// Clock for intervals.
    package var instant: @Sendable () -> ContinuousClock.Instant { session.instant }

    /// Returns true while this node waits for a snapshot, and another node has to make it. A snapshot that is loaded in
    /// part is loaded to its end, as long as it is on the topic.
    package func needsSnapshot() throws -> Bool {
        if try session.read(SnapshotPlace.all).begun != nil { return snapshots.hasNoneToLoad }
        return try !WantedOffsets.load(session).isEmpty
    }

    // MARK: Opening

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
        var files = store
        files.isOfAgent = true
        let opened = try Store(path: path, configuration: files)
        try opened.close()
        try self.init(
            opened: path, store: store, configuration: configuration, security: security, now: now, instant: instant)
    }

    /// The same for a file on which a ``/MartletStore/Store`` was opened just before.
    package init(
        opened path: String, store: StoreConfiguration, configuration: SyncConfiguration,
        security: MessageSecurity = .init(), now: @escaping @Sendable () -> Int64,
        instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws {
        messageGuard = try Self.messageGuard(configuration, security)
        self.configuration = configuration
        session = try ReplicaSession(
            opened: path, store: store, configuration: configuration.ofReplica(limits: messageGuard.configuration),
            now: now, instant: instant)
        conflictRetention = ConflictRetention(session: session)
        inbound = Inbound(
            path: path, messageGuard: messageGuard, traceHeaders: configuration.traceHeaders, late: late,
            triedKeys: TriedKeyRing())
        guard security.signingKey != nil || security.configuration.origins?[node.uuid]?.isEmpty ?? true else {
            throw StoreError(
                .invalidArgument, "security.origins lists a public key of this node, which has no signing key.",
                hint: "Set security.signingKeyFile, or remove this node from the list: it need not be listed.")
        }
        try FilterChange(session: session).adopt(configuration.filters)
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

    /// Waits for the running transaction, and closes the connection. Calls that other threads make afterwards fail.
    public func close() throws { try session.close() }

    // MARK: Publishing

    /// Returns the last sequence that the broker has acknowledged, with all before it.
    public func acknowledged() throws -> Int64 { try PublishProgress(session).acknowledged() }

    /// Returns the sequence up to which all local transactions were read back from the topic.
    public func confirmed() throws -> Int64 { try OwnCount(session).confirmed() }

    /// Deletes published messages whose history was deleted.
    @discardableResult
    public func trimOutbox() throws -> Int { try PublishProgress(session).trim() }

    // MARK: Receiving

    /// Returns the next offset to read in each partition of the topic.
    public func offsets(topic: String) throws -> [PartitionPosition] {
        try TopicPositions(session, topic: topic).all()
    }

    /// Applies messages in order, and stores the offsets after them. One SQLite transaction, in which other writers
    /// wait, takes no further message after 40 ms (`SyncConfiguration.applyTime`); the last message and the commit come
    /// on top. While nobody else has the file open, it takes messages for 200 ms.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written. What was committed before is kept, and the
    ///   batch can be applied again.
    public func apply(_ messages: [IncomingMessage], topic: String) throws -> ApplyReport {
        let applier = applier(topic: topic)
        // Outside of the SQLite transaction, in which other writers wait.
        return try applier.apply(applier.decode(messages))
    }

    /// Applies deferred transactions whose clock is no longer ahead, and returns how many.
    @discardableResult
    public func releaseDeferred() throws -> Int { try DeferredRetry.releaseDue(session) }

    /// Retries everything that is parked now, in one SQLite transaction. Transactions with a clock ahead keep waiting
    /// unless they are due.
    ///
    /// Engines retry by themselves: each item when what it waits for arrives.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written; then everything stays as it was.
    @discardableResult
    public func retryParked() throws -> ParkedRetryReport {
        let counts = try DeferredRetry.retryAll(session)
        return ParkedRetryReport(before: counts.before, after: counts.after)
    }

    /// Decodes quarantined messages again, and applies those that this program now understands, in one SQLite
    /// transaction.
    ///
    /// A message whose headers can't be understood stays until they can. Messages that stay keep their number and age.
    /// - Parameter id: the message to retry. Nil: all.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if no message has this number, any other code
    ///   if the store can't be written; then all messages stay as they were.
    @discardableResult
    public func retryQuarantined(_ id: Int64? = nil) throws -> QuarantineRetryReport {
        try quarantine.retry(id)
    }

    var quarantine: QuarantineRetry {
        QuarantineRetry(session: session, inbound: inbound, batch: configuration.applyBatchTransactions)
    }

    func applier(topic: String) -> BatchApplier {
        BatchApplier(session: session, inbound: inbound, applyTime: configuration.applyTime, topic: topic)
    }

    // MARK: Identity

    /// Checks, before anything is made under this node's ID, whether all of the node's messages that were not read yet
    /// come from this store. Applies nothing.
    ///
    /// Blocks while the topic has more messages. After a lost connection, the next call continues where this one ended.
    /// - Parameter isStopped: called between reads; true ends the check without a result.
    /// - Throws: ``/MartletCore/StoreError`` with code `.copied`, a ``/MartletBus/BusError`` if the topic can't be read
    ///   now, or `CancellationError` if the check was stopped before its end.
    public func checkIdentity(on bus: any Bus, isStopped: () -> Bool = { false }) throws {
        try checkIdentity(on: bus, source: nil, isStopped: isStopped)
    }

    /// The same.
    ///
    /// - Parameter snapshots: searched for what the topic no longer has.
    package func checkIdentity(
        on bus: any Bus, source snapshots: (any SnapshotSource)?, isStopped: () -> Bool = { false }
    ) throws {
        let check = OwnMessageCheck(
            session: session, messageGuard: messageGuard, compared: compared,
            batch: configuration.applyBatchTransactions, batchBytes: configuration.applyBatchBytes, bus: bus,
            snapshots: snapshots)
        try check.run(isStopped: isStopped)
    }

    /// Gives the store a new node ID, because it is a copy, or was restored from a backup, and another store continues
    /// under the ID that it had.
    ///
    /// History, clocks and rows stay. Transactions that had not been seen on the topic are republished under the new
    /// ID, with the clocks that they have: if the other store publishes them too, they are identical, and count once.
    /// Whatever else the former ID published is read like any other node's transactions. History tokens expire, since
    /// they may stand for transactions that this store never had.
    ///
    /// Not while anything else uses this engine.
    /// - Parameter identifier: the new ID. Absent: a random one.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written; nothing was changed then.
    @discardableResult
    public func fork(as identifier: UUID = UUID()) throws -> ForkReport {
        try fork(as: identifier, store: UUID())
    }

    /// The same, for a simulation that also sets the store's identifier in tokens and in the IDs that Martlet assigns.
    @discardableResult
    package func fork(as identifier: UUID, store fresh: UUID) throws -> ForkReport {
        try StoreFork(session: session).run(as: identifier, store: fresh)
    }

    // MARK: Maintenance

    /// Restamps everything that is stamped further in the future than the allowed skew, and publishes it. It was
    /// written under a clock that was ahead, and until that time other nodes keep it waiting, with everything that this
    /// node writes.
    ///
    /// Runs in one SQLite transaction, in which other writers wait. Not while anything else uses this engine, and not
    /// before the clock is right.
    /// - Returns: what was found. If nothing is stamped in the future, nothing is changed.
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written; nothing was changed then.
    @discardableResult
    public func restamp() throws -> RestampReport { try StoreRestamp(session: session).run() }

    /// Looks for rows that vanished or appeared without any trigger having run, and adds them to the history.
    ///
    /// Reads every tracked row once. Others can write meanwhile.
    /// - Parameter progress: called from time to time with the progress, on the calling thread. If it throws, the audit
    ///   ends with that error; changes that were added by then stay.
    public func audit(progress: @escaping (AuditProgress) throws -> Void = { _ in }) throws -> AuditReport {
        // The context doesn't see what the audit changes in the log and the clocks.
        try session.forgetContext()
        return try session.mapErrors {
            try session.database.writeWithoutTransaction {
                try Audit.runSliced($0, patience: session.schemaPatience, progress: progress)
            }
        }
    }

    /// Deletes history that is older than the age, or beyond the size, as far as no cursor needs it. Also deletes its
    /// published messages, and records the bounds in the store, for `martlet status`.
    ///
    /// The bounds also hold for the conflict journal, which is measured by itself. Its newest entry stays.
    ///
    /// The age of remote history counts from its arrival. History may stay longer by a sixteenth of the bound.
    ///
    /// The size is approximate: to measure the history is to read it, and that is done again only once it may have
    /// grown by a sixteenth.
    ///
    /// - Parameter isStopped: called between SQLite transactions; true leaves the rest for the next call.
    /// - Returns: how many rows of the log were deleted.
    @discardableResult
    public func retainHistory(
        age: Duration?, sizeBytes: Int64?, isStopped: () -> Bool = { false }
    ) throws -> Int {
        let count = try HistoryRetention(session: session, gauge: historyGauge).apply(
            age: age, sizeBytes: sizeBytes, isStopped: isStopped)
        try conflictRetention.apply(age: age, sizeBytes: sizeBytes, isStopped: isStopped)
        return count
    }

    /// Returns how the store's file uses its space.
    package func fileSpace() throws -> FileSpace { try session.read { try FileSpace.read($0) } }

    /// Gives free pages of the store's file back to the file system, in slices between which others can write; see
    /// ``FreePages``.
    ///
    /// - Parameter isStopped: called between SQLite transactions; true leaves the rest for the next call.
    /// - Returns: how many pages were given back.
    package func giveBackFreePages(_ count: Int64, isStopped: () -> Bool = { false }) throws -> Int64 {
        try FreePages(session: session).giveBack(count, isStopped: isStopped)
    }

    /// Returns the names of tables and columns that now stand for different ones than before.
    public func reusedNames() throws -> [ReusedName] {
        try session.read { try Catalog.load($0).reusedNames }
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if the store's path leads to another file than the one
    ///   that this engine has open, or to none.
    package func checkIsInPlace() throws { try session.read { try $0.checkIsInPlace(path) } }

    /// See ``/MartletStore/Store/lostEntities()``.
    package func lostEntities() throws -> [LostEntity] { try session.read(LostEntity.all) }
}

extension SyncConfiguration {
    fileprivate func ofReplica(limits: SecurityConfiguration) -> ReplicaSession.Configuration {
        ReplicaSession.Configuration(
            name: name, encoding: encoding, maxClockSkew: maxClockSkew, maxMessageBytes: maxMessageBytes,
            recentClocks: recentClocks, enqueueLimits: enqueueLimits, readerPatience: readerPatience, limits: limits)
    }
}

/// The result of retrying what is parked.
public struct ParkedRetryReport: Sendable, Equatable {
    /// How many items waited before.
    public var before = 0
    /// How many still wait. A transaction with parts that can't be applied leaves one item for each such part.
    public var after = 0

    public init() {}

    init(before: Int, after: Int) {
        self.before = before
        self.after = after
    }
}
