import Foundation
import GRDB
import Logging
import MartletBus
import MartletCore
import MartletEngine
import MartletReplica
import MartletStore

/// One exporter's connections, and how far it has come. Used by one thread at a time.
final class ExportWork {
    let node: NodeID
    private let engine: SyncEngine
    private let topics: any ExportTopics
    private let configuration: ExportConfiguration
    private let names: TopicNames
    private let log: Logger
    private let metrics: ExportMetrics
    private let isStopped: () -> Bool
    private var writer: RecordWriter
    private var lease: LeaseTopic?
    private var sender: ExportSender?
    private var reader: DatabaseQueue?
    /// The topics that exist.
    private var ensured: Set<String> = []
    /// How far it has come. Nil until this run has begun to export.
    private var progress: Progress?
    /// When the run last dropped records of which the broker may still get some.
    private var unsettled: ContinuousClock.Instant?
    /// The term in which this run has begun to export.
    private var begunTerm: Int64?

    private struct Progress {
        var position: ExportPosition
        var place: RowChangePlace
        /// SQLite's version of the schema when the tables were last compared with what was exported.
        var schema: Int64?
    }

    /// This run no longer holds the lease.
    private struct LostLease: Error, CustomStringConvertible {
        var description: String { "another node may export now, because this one could not renew its lease in time" }
    }

    /// Somebody has removed the cursor, and then the history after it.
    private struct LostHistory: Error {}

    init(
        engine: SyncEngine, topics: any ExportTopics, configuration: ExportConfiguration, names: TopicNames,
        version: String, log: Logger, metrics: ExportMetrics, isStopped: @escaping () -> Bool
    ) {
        self.engine = engine
        self.topics = topics
        self.configuration = configuration
        self.names = names
        self.log = log
        self.metrics = metrics
        self.isStopped = isStopped
        node = engine.node
        writer = RecordWriter(configuration, names, version: version)
    }

    deinit { try? reader?.close() }

    var otherExporter: String? {
        guard let held = lease?.lease.holder?.record, !held.isReleased, held.node != node else { return nil }
        return held.name
    }

    // MARK: Steps

    func step() throws -> Exporter.Outcome {
        guard try hold() else {
            try standBy()
            return .notLeading
        }
        var progress = try self.progress ?? begin()
        self.progress = progress
        if try isIdle(progress) {
            metrics.note(isExporting: true, lag: 0)
            return .caughtUp
        }
        let step: Step
        do {
            step = try readAndSend(&progress)
        } catch is LostHistory {
            log.warning("History was deleted before it was exported", metadata: ["prefix": "\(names.prefix)"])
            reset()
            return .exported(0)
        }
        self.progress = progress
        metrics.note(isExporting: true, lag: step.lag)
        metrics.noteRecords(step.records)
        return step.isLast && step.records == 0 ? .caughtUp : .exported(step.records)
    }

    /// Forgets what was not acknowledged, after an error. It is sent again, from the stored position on.
    func reset() {
        // What waits for its turn is sent only while no other node can export.
        let isFlushing = isStopped() && lease?.lease.mayExport(at: engine.instant()) ?? false
        if let sender, !sender.close(isFlushing: isFlushing) { unsettled = engine.instant() }
        sender = nil
        progress = nil
        writer.reset()
        ensured = []
    }

    func end() {
        reset()
        // Another node would begin at once, and records that are still on their way would come after its own.
        if unsettled.map({ engine.instant() >= $0 + configuration.leaseTimeout }) ?? true { lease?.release() }
        lease = nil
        metrics.note(isExporting: false, lag: 0)
    }

    // MARK: Whose turn it is

    private func hold() throws -> Bool {
        if let lease {
            do {
                return try lease.hold()
            } catch let error as BusError where error.code == .unknownTopic {
                // Somebody has deleted it. The next step creates it again.
                self.lease = nil
                throw error
            }
        }
        try topics.ensure(ExportTopic(name: names.lease, partitionCount: 1, isCompacted: true))
        let name = engine.configuration.name ?? node.description
        let made = LeaseTopic(
            ExportLease(node: node, name: name, timeout: configuration.leaseTimeout),
            try topics.bus(of: names.lease), now: engine.instant, isStopped: isStopped)
        lease = made
        return try made.hold()
    }

    /// - Throws: ``LostLease`` once another node may export.
    private func checkLease() throws {
        if isStopped() { throw CancellationError() }
        guard try lease?.stillHolds() ?? false else { throw LostLease() }
    }

    /// Another node exports: its topics are ahead of what this store knows, and its history need not be kept.
    private func standBy() throws {
        metrics.note(isExporting: false, lag: 0)
        if progress != nil {
            log.notice("Another node exports now", metadata: ["exporter": "\(otherExporter ?? "")"])
        }
        sender?.close()
        sender = nil
        progress = nil
        writer.reset()
        guard otherExporter != nil, try engine.session.read({ try ExportPosition.exists($0, names.prefix) }) else {
            return
        }
        try engine.session.writeMeta { try ExportPosition.forget($0, names.prefix) }
    }

    /// Continues where this node ended, if no other has exported since. Otherwise all rows are exported again: what the
    /// other one has exported of them can't be known.
    private func begin() throws -> Progress {
        guard let lease = lease?.lease, let held = lease.holder?.record else { throw LostLease() }
        try topics.ensure(ExportTopic(name: names.transactions, partitionCount: 1, isCompacted: false))
        let known = try engine.session.read { try ExportPosition.load($0, names.prefix) }
        writer.reset()
        let isContinued =
            begunTerm == held.term
            || lease.predecessor?.node == node && (held.since...held.term).contains(known?.position.term ?? 0)
        if let known, isContinued {
            var position = known.position
            position.term = held.term
            position.hasIngested = configuration.ingested
            try forgetLost(&position)
            try save(position, known.mark)
            begunTerm = held.term
            log.info("Exporting from the stored position", metadata: ["prefix": "\(names.prefix)"])
            return Progress(position: position, place: RowChangePlace(mark: known.mark))
        }
        // Before any row is read: what is committed meanwhile comes again as a change.
        let mark = try lease.predecessor == nil ? newestMark() : firstUnexported()?.mark ?? newestMark()
        var position = ExportPosition(term: held.term)
        position.hasIngested = configuration.ingested
        try save(position, mark)
        begunTerm = held.term
        log.notice("Exporting all rows, and then changes", metadata: ["prefix": "\(names.prefix)"])
        return Progress(position: position, place: RowChangePlace(mark: mark))
    }

    private func newestMark() throws -> Int64 { try engine.session.read { try RowChangeReader.newestMark($0) } }

    /// Returns where this node's history has changes that the former exporter has not exported: they come as records
    /// of their own, too. Nil if it has none, or if the topic of transactions doesn't tell.
    private func firstUnexported() throws -> RowChangePlace? {
        let scan = TopicScan(bus: try topics.bus(of: names.transactions), mayContinue: checkLease)
        var exported = ExportedTransactions()
        try scan.forEachMessage(try scan.ends()) { exported.note($0) }
        guard let since = exported.since else { return nil }
        return try engine.session.readStamped(on: try connectedReader()) { (db: Database) -> RowChangePlace? in
            let context = try ReplicaContext(db, now: engine.now)
            let rows = RowChangeReader(db, context, withIngested: configuration.ingested, isWanted: isWanted)
            return try rows.firstUnexported(since: since - Self.clockMargin) { origin, sequence in
                try checkLease()
                return exported.contains(origin, sequence)
            }
        }
    }

    /// How far the clocks of the broker and of nodes may differ: changes before the first exported one are not looked
    /// for.
    private static let clockMargin: Int64 = 3_600_000

    /// Forgets the tables whose topics have lost records. The next record of each of the others is expected at the end
    /// of its topic.
    private func forgetLost(_ position: inout ExportPosition) throws {
        for (table, ends) in position.ends where position.shapes[table] != nil {
            let bus = try topics.bus(of: names.table(table))
            var found: [Int64] = []
            do {
                found = try TopicScan(bus: bus, mayContinue: checkLease).ends().map(\.high)
            } catch let error as BusError where error.code == .unknownTopic {}
            guard found.count < ends.count || zip(found, ends).contains(where: { $0 < $1 }) else {
                try connected().expect(found, in: bus.topic)
                continue
            }
            log.warning("The topic has lost records; exporting the table again", metadata: ["topic": "\(bus.topic)"])
            position.shapes[table] = nil
        }
    }

    private func save(_ position: ExportPosition, _ mark: Int64) throws {
        try engine.session.writeMeta { try position.save($0, names.prefix, mark: mark) }
    }

    // MARK: Records

    private struct Step {
        var records: Int
        var lag: Int64
        var isLast: Bool
    }

    /// Returns true if nothing was committed since the last step. Takes no lock, unlike reading what is stamped.
    private func isIdle(_ progress: Progress) throws -> Bool {
        guard let schema = progress.schema else { return false }
        let reader = try connectedReader()
        return try engine.session.mapErrors {
            try reader.readTransaction { db in
                try RowChangeReader.remaining(db, after: progress.place.mark) == 0
                    && ReplicaContext.schemaVersion(db) == schema && !OwedDelete.areAny(db, names.prefix)
            }
        }
    }

    private func readAndSend(_ progress: inout Progress) throws -> Step {
        let sender = try connected()
        var place = progress.place
        var position = progress.position
        var topicTables: [String: String] = [:]
        var exported: ExportTable?
        var schema: Int64?
        var owed: [OwedDelete] = []
        var step = try engine.session.readStamped(on: try connectedReader()) { (db: Database) -> Step in
            guard try ExportPosition.hasHistory(db, after: place.mark) else { throw LostHistory() }
            let context = try ReplicaContext(db, now: engine.now)
            schema = context.schemaVersion
            let rows = RowChangeReader(db, context, withIngested: configuration.ingested, isWanted: isWanted)
            let tables = try ExportTables(rows.entities, names)
            let present = Set(tables.all.map(\.name))
            position.shapes = position.shapes.filter { present.contains($0.key) }
            position.ends = position.ends.filter { present.contains($0.key) }
            topicTables = Dictionary(tables.all.map { ($0.topic, $0.name) }, uniquingKeysWith: { $1 })
            if let table = tables.all.first(where: { position.shapes[$0.name] != shape(of: $0) }) {
                let records = try export(table, tables, rows, sender)
                exported = table
                position.shapes[table.name] = shape(of: table)
                return Step(
                    records: records, lag: try RowChangeReader.remaining(db, after: place.mark), isLast: false)
            }
            let part = try rows.read(
                from: place, limits: .init(changes: configuration.batchChanges, bytes: 4 << 20))
            var records = 0
            for transaction in part.transactions {
                let messages = try writer.messages(transaction, node: node, now: engine.now()) { tables[$0.entity.id] }
                records += try send(messages, sender)
            }
            place = part.next
            guard part.isLast else {
                return Step(records: records, lag: try RowChangeReader.remaining(db, after: place.mark), isLast: false)
            }
            owed = try OwedDelete.load(db, names.prefix, limit: configuration.batchChanges)
            for delete in owed where configuration.ingested {
                guard let change = try rows.deletion(of: delete), let table = tables[change.entity.id],
                    table.hasKey(of: change.identity)
                else { continue }
                records += try send(writer.deletion(change, of: table, now: engine.now()), sender)
            }
            return Step(records: records, lag: 0, isLast: owed.isEmpty)
        }
        try sender.finish()
        try checkLease()
        for topic in sender.takeDisturbed() {
            guard let table = topicTables[topic] else { continue }
            log.warning(
                "The topic has records of somebody else; exporting the table again", metadata: ["topic": "\(topic)"])
            position.shapes[table] = nil
            step.isLast = false
        }
        if let exported { position.ends[exported.name] = sender.expected(in: exported.topic) }
        if position != progress.position {
            try save(position, place.mark)
        } else if place.mark != progress.place.mark {
            try engine.session.writeMeta { try ExportPosition.advance($0, names.prefix, to: place.mark) }
        }
        if !owed.isEmpty { try engine.session.writeMeta { db in for delete in owed { try delete.forget(db) } } }
        progress = Progress(position: position, place: place, schema: step.isLast ? schema : nil)
        return step
    }

    private func isWanted(_ entity: Entity) -> Bool {
        configuration.tables.isEmpty
            || configuration.tables.contains { $0.lowercased() == entity.name.lowercased() }
    }

    /// What the records of a table look like. If that changes, all its rows are exported again.
    private func shape(of table: ExportTable) -> String {
        let text =
            "\(table.topic)\u{1d}\(configuration.schemas)\u{1d}\(table.shape)"
            + (configuration.ingested ? "\u{1d}ingested" : "")
        return Hex.text(Array(text.utf8).withUnsafeBytes { ContentDigest.sha256($0) }.prefix(16))
    }

    private func send(_ messages: [RecordWriter.Outgoing], _ sender: ExportSender) throws -> Int {
        var records = 0
        for outgoing in messages {
            try checkLease()
            try ensureTable(outgoing.topic)
            try sender.send(outgoing.message, to: outgoing.topic)
            if outgoing.isRecord { records += 1 }
        }
        return records
    }

    private func ensureTable(_ topic: String) throws {
        guard topic != names.transactions, !ensured.contains(topic) else { return }
        try topics.ensure(
            ExportTopic(name: topic, partitionCount: configuration.partitions, isCompacted: true))
        ensured.insert(topic)
    }

    private func connected() throws -> ExportSender {
        if let sender { return sender }
        let made = try ExportSender(try topics.bus(of: names.lease)) { [unowned self] in try checkLease() }
        sender = made
        return made
    }

    private func connectedReader() throws -> DatabaseQueue {
        if let reader { return reader }
        let made = try engine.session.mapErrors { try engine.session.reader() }
        reader = made
        return made
    }

    // MARK: Whole tables

    /// Exports all rows of a table, and removes those from its topic that are gone.
    private func export(
        _ exported: ExportTable, _ tables: ExportTables, _ rows: RowChangeReader, _ sender: ExportSender
    ) throws -> Int {
        guard let entity = rows.entities.first(where: { tables[$0.id] == exported }) else { return 0 }
        try ensureTable(exported.topic)
        // First, so that a row whose key was written in another way is not removed after it was sent.
        var count = try removeGone(exported, entity, rows, sender)
        try rows.forEachRow(of: entity, withIngested: configuration.ingested) { row in
            count += try send([writer.read(row, of: exported, now: engine.now())], sender)
        }
        log.info("Table exported", metadata: ["table": "\(exported.name)", "records": "\(count)"])
        return count
    }

    private func removeGone(
        _ table: ExportTable, _ entity: Entity, _ rows: RowChangeReader, _ sender: ExportSender
    ) throws -> Int {
        let bus = try topics.bus(of: table.topic)
        let scan = TopicScan(bus: bus) { [unowned self] in try checkLease() }
        let ends = try scan.ends()
        sender.expect(ends.map(\.high), in: table.topic)
        var count = 0
        var settled: Set<TopicScan.KeyDigest> = []
        if configuration.ingested, entity.identity != .hidden {
            // Another system may still have the row, although no record of it is on the topic.
            try rows.forEachTombstone(of: entity) { change in
                try checkLease()
                guard let change, table.hasKey(of: change.identity) else { return }
                settled.insert(TopicScan.KeyDigest(writer.key(change.identity, of: table)))
                count += try send(writer.deletion(change, of: table, now: engine.now()), sender)
            }
        }
        guard ends.contains(where: { $0.high > $0.low }) else { return count }
        try rows.forEachRow(of: entity, withIngested: true) { row in
            // Nothing is sent for long, and the lease has to be renewed.
            try checkLease()
            settled.insert(TopicScan.KeyDigest(writer.key(row.identity, of: table)))
        }
        var gone: Set<[UInt8]> = []
        try scan.forEachMessage(ends) { message in
            guard !settled.contains(TopicScan.KeyDigest(message.key)) else { return }
            if message.isNull { gone.remove(message.key) } else { gone.insert(message.key) }
        }
        for key in gone.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            count += try send(writer.removal(key: key, of: table, now: engine.now()), sender)
        }
        return count
    }
}
