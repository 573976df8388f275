import Foundation
package import GRDB
import MartletBus
import MartletCore
package import MartletEngine
import MartletMerge
package import MartletReplica
import MartletStore
package import MartletWire
import Synchronization

/// Merges the contents of a snapshot, in the caller's transaction.
package struct SnapshotApplier {
    package let engine: SyncEngine
    package let db: Database
    package let context: ReplicaContext
    package let header: WireSnapshotHeader
    /// The last sequence of each origin that the snapshot has, and the origin's name.
    private let origins: [NodeID: (applied: Int64, name: String)]

    package init(engine: SyncEngine, db: Database, context: ReplicaContext, header: WireSnapshotHeader) throws {
        self.engine = engine
        self.db = db
        self.context = context
        self.header = header
        var origins: [NodeID: (applied: Int64, name: String)] = [:]
        for origin in header.origins {
            guard let node = NodeID(bytes: origin.node), origins[node] == nil else { continue }
            origins[node] = (try SequenceSet(origin).applied, origin.name)
        }
        self.origins = origins
    }

    /// - Parameter rows: the rows, if they are not among the contents.
    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` for invalid contents.
    package func apply(_ contents: WireSnapshotContents, rows: SnapshotRows? = nil) throws {
        let rows = rows ?? SnapshotRows(contents.rows)
        let mapping = try SnapshotMapping(header, context, unseen: unseen())
        let unmentioned = UnmentionedRows(db: db, context: context)
        let mentions = try header.collected > 0 && unmentioned.areAny()
        // Where tombstones were collected, each row is looked up first.
        let tables =
            try mentions || context.collected.time > .zero ? nil : PlainSnapshotTables(db, context, header)
        let applier = Applier(db, context)
        var changes: [RemoteChange] = []
        var unknown: [(change: WireChange, stamp: Stamp, detail: String)] = []
        var withoutIdentity: [(change: WireChange, stamp: Stamp)] = []
        func add(_ translated: SnapshotMapping.Translated) throws {
            unknown += translated.unknown
            if let change = translated.withoutIdentity { withoutIdentity.append(change) }
            guard let change = translated.change else { return }
            if tables == nil { changes.append(change) } else { try applier.add(state: change) }
        }
        context.clock.observe(HybridTime(rawValue: header.hlc))
        do {
            for tombstone in contents.tombstones {
                let translated = try mapping.translate(tombstone)
                if tombstone.lasting, let change = translated.change {
                    try context.tombstones.makeLasting(db, change.entity.id, change.identity, of: nil)
                }
                try add(translated)
            }
            for index in rows.indices {
                if let tables, let plain = rows.plain(index), try tables.insert(plain, with: applier) { continue }
                try add(mapping.translate(rows.message(index)))
            }
        } catch let error as WireError {
            throw SnapshotFormat.damaged(error.description)
        }
        if mentions { try unmentioned.mention(changes) }
        let knowsLess = try context.knowsLess(db, header)
        try applier.apply(
            states: changes.filter { change in
                guard try applier.hasCollected(change, knowsLess: knowsLess) else { return true }
                if change.state?.clocks.isAlive ?? false { engine.snapshots.noteRowLeftOut() }
                return false
            })
        try context.applied.close(
            db, mark: TransactionMark(author: TransactionAuthor.sync, context: "snapshot"))
        for (change, stamp, detail) in unknown { try park(change, stamp, detail) }
        try quarantine(withoutIdentity)
        for payload in contents.deferred { try takeDeferred(Array(payload)) }
        for chunk in contents.chunks { try takeChunk(chunk) }
        context.clock.note()
    }

    /// The stamps of this node's changes that the snapshot's maker had not seen.
    package func unseen() throws -> UnseenStamps {
        try UnseenStamps(db, context, from: context.firstLacking(in: header))
    }

    // MARK: Pending changes

    /// Stores a change that this store's schema doesn't know as a pending change, as the receiver would.
    private func park(_ change: WireChange, _ stamp: Stamp, _ detail: String) throws {
        var transaction = WireTransaction()
        transaction.format = WireFormat.version
        transaction.origin = Data(stamp.node.bytes)
        let origin = origins[stamp.node]
        // Which of the origin's transactions it belonged to is unknown, but it is not later than this one.
        transaction.sequence = UInt64(max(1, origin?.applied ?? 1))
        transaction.originName = origin?.name ?? ""
        transaction.hlc = stamp.time.rawValue
        transaction.changes = [change]
        let payload = try WireFormat.encode(transaction, as: .protobuf)
        guard try !isDeferred(payload) else { return }
        _ = try transactions.apply(DecodedTransaction(transaction), payload: .whole(payload))
    }

    /// Stores changes without a row identity in the quarantine, as one message.
    private func quarantine(_ withoutIdentity: [(change: WireChange, stamp: Stamp)]) throws {
        guard !withoutIdentity.isEmpty else { return }
        let ascending = withoutIdentity.sorted { $0.stamp < $1.stamp }
        var transaction = WireTransaction()
        transaction.format = WireFormat.version
        transaction.origin = header.maker
        transaction.originName = header.makerName
        transaction.sequence = 1
        transaction.hlc = ascending[0].stamp.time.rawValue
        var time = transaction.hlc
        var changes = ChangeSelection()
        for (change, stamp) in ascending {
            var change = change
            change.clockStep = stamp.time.rawValue - time
            time = stamp.time.rawValue
            _ = try changes.addIfWithoutIdentity(DecodedChange(change))
        }
        _ = try transactions.refuse(changes, of: transaction)
    }

    private func takeDeferred(_ payload: [UInt8]) throws {
        guard try !isDeferred(payload) else { return }
        try transactions.applyDeferred(.whole(payload), unless: isSettled)
    }

    /// Returns true for a transaction that waits for its clock at the snapshot's maker, if this node wrote it, or has
    /// received it or one that replaces it.
    private func isSettled(_ transaction: DecodedTransaction) throws -> Bool {
        // Parts of transactions, which wait for a table or a filter, are not ahead of the maker's clock.
        guard let origin = transaction.origin, let latest = transaction.latest,
            latest > HybridTime(rawValue: header.hlc)
        else { return false }
        if origin == context.node { return true }
        let envelope = WireEnvelope(origin: origin, sequence: transaction.sequence)
        return try !ReceivedSequences(db, context).isNew(envelope)
    }

    private func isDeferred(_ payload: [UInt8]) throws -> Bool {
        try DeferredChanges.contains(db, context, payload)
    }

    private var transactions: TransactionApplier {
        TransactionApplier(db: db, context: context, limits: engine.messageGuard.configuration, topic: "")
    }

    private func takeChunk(_ chunk: WireSnapshotChunk) throws {
        // Only chunks of transactions that are here already, or that this node wrote, are skipped. Any other chunk is
        // needed: the snapshot's offsets may move this node past it on the topic. The snapshot counts its transaction
        // as missing, and so does this node until all chunks are here.
        let intake = Intake(engine.inbound, db, context, topic: "")
        guard let envelope = WireEnvelope(chunk), envelope.origin != context.node,
            try intake.sequences.isNew(envelope)
        else { return }
        try intake.take(chunkOfSnapshot: envelope, Array(chunk.payload), isAhead: isAhead(in:))
        intake.finish()
    }

    /// Returns true if the snapshot's maker had read this partition further than this node. Nil: any partition.
    private func isAhead(in partition: Int32?) throws -> Bool {
        let own = Dictionary(
            uniqueKeysWithValues: try ReadProgress.offsets(db, of: header.topic).map { ($0.partition, $0.offset) })
        return header.positions.contains { position in
            partition.map { $0 == position.partition } ?? true && position.next > own[position.partition] ?? 0
        }
    }
}
