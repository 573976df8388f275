import Foundation
package import GRDB
import MartletBus
package import MartletCore
package import MartletEngine
package import MartletMerge
package import MartletReplica
package import MartletStore
package import MartletWire

/// Makes the messages of a check, in the caller's read transaction, in which every local change is enqueued.
package final class AntiEntropyReader {
    /// The most ranges of one table for which one message has details.
    package static let maxRanges = 64
    /// The most ranges of all tables for which one message has details: each can have sixteen parts, and a receiver
    /// ignores a message that has too many.
    private static let maxDetails = InputBounds.maxCheckRanges / 16

    private let db: Database
    private let context: ReplicaContext
    private let reader: RecordReader
    private let topic: String
    private let held: Set<Int64>
    package let origins: [WireSnapshotOrigin]
    package let vector: VersionVector

    package init(_ db: Database, engine: SyncEngine, topic: String) throws {
        self.db = db
        self.topic = topic
        context = try ReplicaContext(db, now: engine.now)
        reader = try RecordReader(db, context)
        held = try reader.tablesWithPendingChanges()
        reader.ignored = try context.collected.highestKnown(db)
        origins = try context.origins(db)
        vector = try VersionVector(origins)
    }

    /// An answer, and whether there was more to say that fits into further messages.
    package struct Answer {
        package var message = WireCheckMessage()
        package var isCut = false
        /// True if everything that was compared is the same.
        package var isAgreed = true

        /// True for a message that has only a header, and is sent nevertheless.
        package var isAcknowledgement = false

        package var isEmpty: Bool { !isAcknowledgement && message.digests.isEmpty && !message.hasContents }
    }

    private func header(withNames: Bool) -> WireSnapshotHeader {
        WireSnapshotHeader(context, topic: topic, origins: origins, names: withNames ? reader.encoder : nil)
    }

    private func message(_ check: NodeID, step: Int) -> WireCheckMessage {
        var message = WireCheckMessage()
        message.check = Data(check.bytes)
        message.step = UInt32(step)
        message.header = header(withNames: false)
        message.ignored = reader.ignored.rawValue
        return message
    }

    /// Deleted rows without a stamp after this time don't count.
    package var ignored: HybridTime {
        get { reader.ignored }
        set { reader.ignored = newValue }
    }

    /// Makes a message that only states which transactions this node has, and its clock: other nodes learn from it
    /// which changes can't come from this node any more.
    package func report(_ check: NodeID) -> WireCheckMessage { message(check, step: 1) }

    /// The same, as the answer to a node that requested one.
    package func acknowledgement(to message: AntiEntropyMessage) -> WireCheckMessage {
        self.message(message.check, step: message.step + 1)
    }

    /// Leaves out the same tombstones as the message.
    ///
    /// - Returns: false if that is impossible, because this node has collected more of them.
    private func ignore(like message: AntiEntropyMessage) -> Bool {
        let theirs = HybridTime(rawValue: message.wire.ignored)
        guard theirs >= context.collected.time else { return false }
        reader.ignored = theirs
        return true
    }

    /// Makes the first message of a check: the digest of the rows of each table.
    package func beginning(_ check: NodeID) throws -> WireCheckMessage {
        var message = message(check, step: 0)
        message.digests = try context.catalog.entities.filter { !held.contains($0.id) }.map { entity in
            WireCheckEntity(entity, [(.all, try reader.sums(of: entity, [.all])[.all] ?? RangeSum())])
        }
        return message
    }

    // MARK: Whole stores

    /// Returns the digests of the rows of each table, in so many ranges that few rows are in each.
    package func sums() throws -> [(entity: Entity, sums: [KeyRange: RangeSum])] {
        try context.catalog.entities.filter { !held.contains($0.id) }.map { entity in
            let rows = try RecordReader.rowCount(db, entity)
            return (entity, try reader.sums(of: entity, KeyRange.every(level: KeyRange.level(forRows: rows))))
        }
    }

    /// Returns the digests of this store's rows, for a table of another store. Nil if the table can't be compared.
    package func sums(like entity: Entity, _ ranges: [KeyRange]) throws -> [KeyRange: RangeSum]? {
        guard let own = context.catalog[entity.name], !held.contains(own.id),
            RecordShape(own).digest == RecordShape(entity).digest
        else { return nil }
        return try reader.sums(of: own, ranges)
    }

    /// Returns all rows of these ranges.
    package func rows(of entity: Entity, _ ranges: [KeyRange]) throws -> AntiEntropyMessage {
        let shape = RecordShape(entity)
        var rows = AntiEntropyContents(limit: .max, clock: context.clock.last)
        try reader.forEach(entity, in: Set(ranges)) { record in
            if shape.hash(record) != nil { _ = try rows.add(record, of: entity, reader.encoder) }
        }
        var wire = message(.none, step: 0)
        wire.header = header(withNames: true)
        wire.digests = [WireCheckEntity(entity, [])]
        wire.contents = rows.contents
        return AntiEntropyMessage(wire: wire, sender: context.node, check: .none, vector: vector, byteCount: 0)
    }

    // MARK: Differences

    /// Compares the digests of a message with this store. For ranges that differ, the answer has the digests of their
    /// parts, or the rows if there are few.
    ///
    /// - Parameters:
    ///   - isAnswered: returns true if a node with the same state has answered already.
    ///   - limit: the most bytes of a message.
    package func answer(
        to message: AntiEntropyMessage, limit: Int, isAnswered: (String, KeyRange, RangeSum) -> Bool
    ) throws -> Answer {
        guard ignore(like: message) else { return Answer(isAgreed: false) }
        var answer = Answer(message: self.message(message.check, step: message.step + 1))
        var leaves: [(entity: Entity, sums: [KeyRange: RangeSum])] = []
        // No table keeps the others out.
        let share = min(Self.maxRanges, max(1, Self.maxDetails / max(1, message.wire.digests.count)))
        var details = 0
        for theirs in message.wire.digests {
            guard let entity = context.catalog[theirs.name], !held.contains(entity.id),
                Array(theirs.shape) == RecordShape(entity).digest
            else { continue }
            let ranges = theirs.sums
            let sums = try reader.sums(of: entity, ranges.flatMap { [$0.range] + $0.range.parts })
            var few: [KeyRange: RangeSum] = [:]
            var parts: [(range: KeyRange, sum: RangeSum)] = []
            for (range, sum) in ranges {
                guard let mine = sums[range], mine != sum else { continue }
                answer.isAgreed = false
                guard !isAnswered(entity.name, range, mine) else { continue }
                guard few.count + parts.count / 16 < share, details < Self.maxDetails else {
                    answer.isCut = true
                    continue
                }
                details += 1
                if max(mine.rows, sum.rows) <= KeyRange.leafRows || range.parts.isEmpty {
                    few[range] = mine
                } else {
                    parts += range.parts.map { ($0, sums[$0] ?? RangeSum()) }
                }
            }
            if !parts.isEmpty { answer.message.digests.append(WireCheckEntity(entity, parts)) }
            if !few.isEmpty { leaves.append((entity, few)) }
        }
        try addRows(leaves, limit, &answer)
        return answer
    }

    private func addRows(
        _ leaves: [(entity: Entity, sums: [KeyRange: RangeSum])], _ limit: Int, _ answer: inout Answer
    ) throws {
        guard !leaves.isEmpty else { return }
        var rows = AntiEntropyContents(limit: limit, clock: context.clock.last)
        for (entity, sums) in leaves {
            let shape = RecordShape(entity)
            var incomplete: Set<KeyRange> = []
            try reader.forEach(entity, in: Set(sums.keys)) { record in
                guard shape.hash(record) != nil, try !rows.add(record, of: entity, reader.encoder) else { return }
                let position = KeyRange.position(record.identity)
                incomplete.formUnion(sums.keys.filter { KeyRange(position, level: $0.level) == $0 })
            }
            let covered = sums.filter { !incomplete.contains($0.key) }.map { (range: $0.key, sum: $0.value) }
            answer.message.covered.append(WireCheckEntity(entity, covered.sorted { $0.range.prefix < $1.range.prefix }))
        }
        if rows.isCut { answer.isCut = true }
        answer.message.contents = rows.contents
        answer.message.header = header(withNames: true)
    }

    // MARK: Rows for others

    /// Answers the rows of a message with those that are later here, or that the sender lacks.
    package func reply(
        to message: AntiEntropyMessage, limit: Int, present: Set<NodeID>,
        isAnswered: (String, KeyRange, RangeSum) -> Bool
    ) throws -> Answer {
        guard ignore(like: message) else { return Answer(isAgreed: false) }
        var answer = Answer(message: self.message(message.check, step: message.step + 1))
        let received = try AntiEntropyRows(
            message.wire.header, shapes: AntiEntropyRows.shapes(message.wire), held: held, context
        ).read(message.wire.contents)
        let theirs = Dictionary(
            received.map { (RowIdentity(entity: $0.change.entity.id, identity: $0.change.identity), $0.record) },
            uniquingKeysWith: { a, _ in a })
        let rule = TieRule(node: message.sender, sender: context.node, present: present)
        var rows = AntiEntropyContents(limit: limit, clock: context.clock.last)
        var changed: Set<Int64> = []
        var seen: Set<RowIdentity> = []
        /// - Parameter isWhole: true for rows in ranges of which the message has all rows.
        func compare(_ entity: Entity, _ mine: RowRecord, isWhole: Bool) throws {
            let name = RowIdentity(entity: entity.id, identity: mine.identity)
            guard seen.insert(name).inserted else { return }
            let other = theirs[name]
            let comparison = RowComparison(mine: mine, theirs: other, columns: entity.comparedColumns)
            let isSent = comparison.tied.contains { slot in
                guard let a = other?.register(slot), let b = mine.register(slot) else { return false }
                // If another node has to decide, it has to hear of the tie.
                return rule.takesTheirs(b.stamp, mine: a.value, theirs: b.value) ?? isWhole
            }
            guard comparison.isExistenceOlder || !comparison.older.isEmpty || isSent else { return }
            if try rows.add(mine, of: entity, reader.encoder) { changed.insert(entity.id) }
        }
        for covered in message.wire.covered {
            guard let entity = context.catalog[covered.name], !held.contains(entity.id),
                Array(covered.shape) == RecordShape(entity).digest
            else { continue }
            let ranges = covered.sums
            let sums = try reader.sums(of: entity, ranges.map(\.range))
            let differing = ranges.filter { sums[$0.range] != $0.sum }.map(\.range)
            let wanted = differing.filter { !isAnswered(entity.name, $0, sums[$0] ?? RangeSum()) }
            try reader.forEach(entity, in: Set(wanted)) { try compare(entity, $0, isWhole: true) }
            // The rows of these ranges are done: they are the same, or this node or another one has answered them.
            for name in theirs.keys where name.entity == entity.id {
                let position = KeyRange.position(name.identity)
                if ranges.contains(where: { KeyRange(position, level: $0.range.level) == $0.range }) {
                    seen.insert(name)
                }
            }
            guard changed.contains(entity.id) else { continue }
            answer.message.digests.append(WireCheckEntity(entity, wanted.map { ($0, sums[$0] ?? RangeSum()) }))
        }
        let applier = Applier(db, context)
        for one in received
        where !seen.contains(RowIdentity(entity: one.change.entity.id, identity: one.change.identity)) {
            guard let mine = try applier.record(one.change.table, one.change.identity)?.published,
                !mine.clocks.isCollected(by: reader.ignored)
            else { continue }
            try compare(one.change.entity, mine, isWhole: false)
        }
        answer.isCut = rows.isCut
        guard !changed.isEmpty else { return answer }
        // The receiver looks up the shapes of the tables in the digests.
        let named = Set(answer.message.digests.map(\.name))
        for entity in context.catalog.entities where changed.contains(entity.id) && !named.contains(entity.name) {
            answer.message.digests.append(WireCheckEntity(entity, []))
        }
        answer.message.contents = rows.contents
        answer.message.header = header(withNames: true)
        return answer
    }

    /// Returns false while a snapshot is loaded in part: the rows are then ahead of the transactions that the node
    /// claims to have.
    package static func isReady(_ db: Database) throws -> Bool {
        try !SnapshotPlace.isAnyUnfinished(db)
    }

    /// Returns true if the broker has acknowledged all local transactions, and all messages up to the known ends were
    /// read.
    package static func isCaughtUp(_ db: Database, topic: String) throws -> Bool {
        let last = try Outbox.lastSequence(db)
        guard try Meta.integer(db, SyncMeta.acknowledged) ?? 0 >= last else { return false }
        return try ReadProgress.offsets(db, of: topic).allSatisfy { position in
            let end = try Meta.integer(db, SyncMeta.end(topic: topic, partition: position.partition)) ?? 0
            return position.offset >= end
        }
    }
}

/// The rows of a message, up to its size limit.
package struct AntiEntropyContents {
    package private(set) var contents = WireSnapshotContents()
    /// True if a row did not fit any more that fits into a message of its own. A row that is larger than any message
    /// stays different: to continue the check would not help it.
    package private(set) var isCut = false
    private var size = 0
    private let limit: Int
    private let clock: HybridTime

    /// - Parameters:
    ///   - limit: in bytes.
    ///   - clock: the store's clock. Rows with a later stamp are left out: no transaction gave it, and every receiver
    ///     would reject the message.
    package init(limit: Int, clock: HybridTime) {
        self.limit = limit
        self.clock = clock
    }

    /// - Returns: false if the row doesn't fit any more.
    package mutating func add(_ record: RowRecord, of entity: Entity, _ encoder: SnapshotRowEncoder) throws -> Bool {
        let newest = [record.clocks.newest, record.clocks.deleted].compactMap(\.self).max()
        if let newest, newest.time > clock { return true }
        if record.values.isEmpty, record.clocks.inserted == nil, let deleted = record.clocks.deleted {
            var tombstone = WireSnapshotTombstone()
            tombstone.entity = encoder.place(of: entity)
            tombstone.identity = try encoder.wire(record.identity)
            tombstone.deleted = encoder.stamp(deleted)
            guard grow(by: record.identity.bytes.count + 20) else { return false }
            contents.tombstones.append(tombstone)
        } else {
            let (row, size) = try encoder.encode(entity, record)
            guard grow(by: size) else { return false }
            contents.rows.append(row)
        }
        return true
    }

    private mutating func grow(by count: Int) -> Bool {
        guard count <= limit - size else {
            if count <= limit { isCut = true }
            return false
        }
        size += count
        return true
    }
}
