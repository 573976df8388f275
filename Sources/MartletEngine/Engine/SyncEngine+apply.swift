package import GRDB
public import MartletBus
public import MartletCore
package import MartletReplica
import MartletStore
package import MartletWire
import Synchronization

/// The result of applying a batch of messages.
public struct ApplyReport: Sendable, Equatable {
    /// Transactions that were applied, at least in part.
    public var applied = 0
    /// When these transactions were committed at their origins, in milliseconds since 1970 by the origins' clocks.
    public var committed: [Int64] = []
    /// Transactions that had been applied before.
    public var duplicates = 0
    /// Messages that this node itself sent.
    public var own = 0
    /// Chunks that wait for the rest of their transaction.
    public var chunks = 0
    /// Transactions deferred until their clock is no longer ahead.
    public var deferred = 0
    /// Messages that can't be understood.
    public var quarantined = 0
    /// Incomplete transactions whose chunks were dropped because there were more than may be kept.
    public var droppedChunks = 0
    /// The gaps in origins' sequences that this batch found.
    public var gaps: [SequenceGap] = []
    /// How far this node's clock is ahead of the broker's, in milliseconds, as measured by this node's own messages;
    /// negative if it is behind.
    public var clockOffset: ClosedRange<Int64>?
    /// The transactions that were applied, one by one, if requested.
    package var traced: [TracedTransaction] = []
    /// Partitions whose messages differ from those that were read before: the log was truncated or recreated.
    public var rewound: [Int32] = []

    public init() {}

    /// Takes a message of this node into account: the broker's clock read `appended` at some moment between those at
    /// which this node's clock read `made` and `read`.
    package mutating func noteOwn(made: Int64, appended: Int64, read: Int64) {
        // Ignored if the clock was set back in between.
        guard made <= read else { return }
        let offset = (made - appended)...(read - appended)
        guard let known = clockOffset, known.overlaps(offset) else {
            clockOffset = offset
            return
        }
        clockOffset = known.clamped(to: offset)
    }
}

/// Transactions of an origin that were never read.
public struct SequenceGap: Sendable, Equatable {
    public var origin: NodeID
    public var first: Int64
    public var last: Int64

    public init(origin: NodeID, first: Int64, last: Int64) {
        self.origin = origin
        self.first = first
        self.last = last
    }
}

extension SyncEngine {
    /// Applies messages in order, and stores the offsets after them. One SQLite transaction, in which other writers
    /// wait, applies as many as take some 50 ms; a single message may take longer.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the store can't be written. What was committed before is kept, and the
    ///   batch can be applied again.
    public func apply(_ messages: [IncomingMessage], topic: String) throws -> ApplyReport {
        // Outside of the SQLite transaction, in which other writers wait.
        try apply(decode(messages, topic: topic), topic: topic)
    }

    /// Opens and decodes messages; many of them on all processors.
    ///
    /// - Parameter isAhead: true if a thread is applying other messages meanwhile, and needs a processor.
    package func decode(_ messages: [IncomingMessage], topic: String, isAhead: Bool = false) -> [DecodedMessage] {
        messageGuard.refresh()
        return DecodedMessage.all(
            messages, DecodedMessage.Reader(messageGuard: messageGuard, topic: topic, node: node), isAhead: isAhead)
    }

    /// Applies messages that were decoded before.
    ///
    /// - Parameter follows: whether the report lists each applied transaction.
    package func apply(_ messages: [DecodedMessage], topic: String, follows: Bool = false) throws -> ApplyReport {
        var report = ApplyReport()
        var next = 0
        repeat {
            // Outside of the SQLite transaction, in which other writers wait.
            let assembled = try next < messages.count ? assemble(messages[next]) : nil
            try transaction(keepsCache: true) { db, context in
                let end = instant() + configuration.applyTime
                var receiver = Receiver(
                    engine: self, db: db, context: context, topic: topic, assembled: assembled)
                let first = next
                while next < messages.count {
                    let message = messages[next]
                    if next > first, message.mayComplete || instant() >= end { break }
                    next += 1
                    let applied = report.applied
                    try receiver.receive(message, &report)
                    guard follows, report.applied > applied, let traced = receiver.traced(message) else { continue }
                    report.traced.append(traced)
                }
                receiver.finish(&report)
            }
        } while next < messages.count
        return report
    }

    /// Assembles and decodes a transaction, if the message is the last missing chunk of it.
    private func assemble(_ message: DecodedMessage) throws -> AssembledTransaction? {
        guard case .success(let envelope) = message.envelope, let chunk = envelope.chunk, message.isIntact,
            envelope.origin != node, message.refusal == nil
        else { return nil }
        return try read { db in
            try AssembledTransaction(db, envelope, chunk, message.message.payload, messageGuard.configuration)
        }
    }

    /// Applies deferred transactions whose clock is no longer ahead, and returns how many.
    @discardableResult
    public func releaseDeferred() throws -> Int {
        guard mayHaveDeferred.load(ordering: .relaxed) else { return 0 }
        // Before looking: a transaction that is deferred meanwhile sets the flag again.
        mayHaveDeferred.store(false, ordering: .relaxed)
        var next: Int64? = .max
        defer { if next != nil { mayHaveDeferred.store(true, ordering: .relaxed) } }
        next = try read(DeferredChanges.nextRelease)
        guard let next, next <= now() else { return 0 }
        return try transaction { db, context in
            try retryDeferred(db, context, .released(by: now()))
        }
    }

    /// Retries changes that named an unknown table or column. To be called after a schema change.
    package func retryUnknown(_ db: Database, _ context: EngineContext) throws {
        _ = try retryDeferred(db, context, .waitingForSchema)
        // Once for each schema: there may be many, and only a schema change can remove a constraint.
        if try context.schemaVersion != Meta.integer(db, SyncMeta.retriedSchema) {
            try Applier(db, context).retryConstrained()
            try Meta.set(db, SyncMeta.retriedSchema, context.schemaVersion)
        }
        try closeTransaction(db, context, mark: TransactionMark(author: TransactionAuthor.sync, context: "retry"))
    }

    package func retryDeferred(_ db: Database, _ context: EngineContext, _ selection: DeferredChanges.Selection) throws
        -> Int
    {
        var report = ApplyReport()
        let count = try DeferredChanges.forEach(db, selection) { id, payload, reason in
            // The entry keeps its number and its age.
            if reason == .unknownSchema || reason == .filtered, isStillUnknown(payload, context) { return }
            try DeferredChanges.remove(db, id)
            let receiver = Receiver(engine: self, db: db, context: context, topic: "")
            try receiver.applyDeferred(payload, &report)
        }
        if count > 0 { context.noteClock() }
        return report.applied
    }

    /// Returns true for a change that names something that this store still lacks, or that its filter still rejects.
    private func isStillUnknown(_ payload: [UInt8], _ context: EngineContext) -> Bool {
        guard let transaction = try? WireFormat.decode(payload), transaction.changes.count == 1 else { return false }
        do {
            let decoded = DecodedChange(transaction.changes[0])
            let change = try RemoteChange(decoded, stamp: .zero, context: context)
            // A part for local columns contains no other columns.
            return change.columns.isEmpty && decoded.localPart(change.table) != nil
        } catch {
            return error is UnknownSchema
        }
    }

    /// Runs `body` in one read transaction on the engine's connection.
    package func read<T>(_ body: (Database) throws -> T) throws -> T {
        try mapErrors { try database.readTransaction(body) }
    }

    package func mapErrors<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }
}
