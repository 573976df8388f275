import Foundation
import GRDB
import MartletCore
import MartletReplica
import MartletStore
import MartletWire

/// Merges consecutive records of one partition: one SQLite transaction, which also stores the place after them, and
/// what this node publishes of them.
///
/// A value for one transaction of the engine's connection.
struct SourceMerge {
    private let db: Database
    private let context: ReplicaContext
    private let configuration: ReplicaSession.Configuration
    private let source: Source
    /// The table, or the reason why it can't take rows.
    private let maker: Result<RowChangeMaker, IngestError>
    private let bounds: SourceClock.Bounds
    private var place: SourcePlace
    private var clock: SourceClock
    private var run = ChangeRun()

    /// The result of merging records.
    struct Outcome {
        /// The place after the records that were merged.
        var place: SourcePlace
        /// How many records were merged, those that change nothing included.
        var count = 0
        /// True if the records are those of another topic of that name: nothing was merged.
        var isOfAnotherTopic = false
    }

    init(
        _ db: Database, _ context: ReplicaContext, _ configuration: ReplicaSession.Configuration, _ source: Source,
        _ mapping: TableMapping
    ) throws {
        self.db = db
        self.context = context
        self.configuration = configuration
        self.source = source
        maker = Result { () throws(IngestError) in
            RowChangeMaker(
                target: try TargetTable(mapping, context), source: source, applier: Applier(db, context))
        }
        bounds = SourceClock.Bounds(
            collected: try context.collected.highestKnown(db), limit: context.now() + context.maxClockSkew)
        place = try SourcePlace.load(db, source.topic, source.partition)
        clock = SourceClock(place)
    }

    /// Merges the records up to the first one that can't be merged, which holds up the partition.
    mutating func merge(_ records: [SourceRecord]) throws -> Outcome {
        let stored = place
        var outcome = Outcome(place: place)
        if let seen = place.seen,
            let digest = records.first(where: { $0.offset == seen.offset })?.digest, digest != seen.digest
        {
            outcome.isOfAnotherTopic = true
            return outcome
        }
        for record in records where record.offset >= place.next {
            let (placeBefore, clockBefore) = (place, clock)
            do {
                try add(record)
                place.next = record.offset + 1
                place.seen = record.digest.map { SourcePlace.Seen(offset: record.offset, digest: $0) }
                place.problem = nil
                outcome.count += 1
            } catch let error as IngestError {
                (place, clock) = (placeBefore, clockBefore)
                // Compaction may have removed the records before it. Those of an unreadable batch may be read one day.
                place.next = max(place.next, record.first)
                let since = stored.next == place.next ? stored.problem?.since : nil
                place.problem = SourcePlace.Problem(
                    reason: error.description, since: since ?? context.now(), last: record.offset)
                break
            }
        }
        try endRun()
        place.keep(clock)
        if place != stored { try place.save(db) }
        outcome.place = place
        return outcome
    }

    /// - Throws: ``IngestError`` if the record can't be merged.
    private mutating func add(_ record: SourceRecord) throws {
        let maker = try self.maker.get()
        let followsDelete = place.deleted == record.key
        if record.isNull, followsDelete {
            place.deleted = nil
            return
        }
        guard let event = try record.event.get() else { return }
        place.deleted = event.operation == .delete ? record.key : nil
        if event.operation == .null, followsDelete { return }
        let values = try maker.target.identity(event.key)
        let identity = StableID(values: values)
        let time = try time(of: event, record)
        if !run.takes(identity, at: time.stamp) { try endRun() }
        guard let change = try maker.change(event, values, at: time) else { return }
        run.add(change, of: identity, at: time.stamp, record)
    }

    private mutating func time(of event: SourceEvent, _ record: SourceRecord) throws(IngestError) -> SourceClock.Time {
        // A null record without its delete has Kafka's time only, which is later than the source's.
        let isUntimed = event.operation == .null && clock.last > .zero
        guard let milliseconds = event.milliseconds ?? record.timestamp ?? (isUntimed ? 0 : nil) else {
            throw IngestError(
                .clock, "neither the record nor its source says when the change was made",
                hint: "Let the connector or the broker give records a time, or skip the record.")
        }
        return try clock.time(
            of: isUntimed ? nil : milliseconds, offset: record.offset, position: event.position, within: bounds)
    }

    /// Merges the changes of the run like a transaction of another node, and puts them into the outbox as one of this
    /// node.
    private mutating func endRun() throws {
        guard let first = run.changes.first else { return }
        var outbox = try Outbox(db, context)
        var header = WireTransaction()
        header.author = TransactionAuthor.ingest
        header.timestampMs = context.now()
        header.clockNode = Data(source.node.bytes)
        let payload = try OutgoingChanges(run.changes).encoded(
            in: outbox.addressed(header), as: configuration.encoding)
        let origin = TransactionOrigin(
            node: source.node.bytes, sequence: run.lastOffset + 1, author: nil,
            timestamp: HybridTime(rawValue: first.clockStep).milliseconds, name: source.name)
        try context.nodes.note(db, source.node, name: source.name)
        _ = try TransactionApplier(db: db, context: context, limits: configuration.limits, topic: "").apply(
            DecodedTransaction(payload: payload), payload: .whole(payload),
            mark: TransactionMark(author: TransactionAuthor.ingest, origin: origin))
        context.clock.note()
        try outbox.append(payload, of: context.applied.newest ?? context.meta(db, MetaKey.stamped) ?? 0)
        try outbox.close()
        run = ChangeRun()
    }
}

extension SourceClock {
    init(_ place: SourcePlace) {
        // A position that can't be read counts as none.
        let position = place.position.flatMap { try? JSONDecoder().decode(SourcePosition.self, from: Data($0.utf8)) }
        self.init(last: place.last, position: position)
    }
}

extension SourcePlace {
    fileprivate mutating func keep(_ clock: SourceClock) {
        last = clock.last
        guard let position = clock.position else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // Text and numbers can always be encoded.
        self.position = (try? encoder.encode(position)).map { String(decoding: $0, as: UTF8.self) }
    }
}
