import Foundation
import GRDB
import MartletCore
import MartletEngine
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// Republishes transactions that other nodes refuse: this node was away for so long, or is so new, that its
/// transactions are from before the time up to which the others have collected tombstones.
///
/// The others can't tell whether a row of that time was deleted since. This node can, once it has everything that they
/// have. It republishes the changes that still count, under new stamps and sequences, and leaves out those that were
/// overruled, or whose row was deleted.
struct Republication {
    let db: Database
    let context: ReplicaContext
    let encoding: WireEncoding
    private let applier: Applier

    init(_ db: Database, _ context: ReplicaContext, encoding: WireEncoding) {
        self.db = db
        self.context = context
        self.encoding = encoding
        applier = Applier(db, context)
    }

    /// - Parameters:
    ///   - header: the header of a message from a node that has collected tombstones.
    ///   - received: the transactions of this node that the other node has.
    /// - Returns: how many transactions were republished.
    func run(_ header: WireSnapshotHeader, received: SequenceSet) throws -> Int {
        let watermark = HybridTime(rawValue: header.collected)
        let refused = try Self.refused(db, by: watermark, received: received)
        guard !refused.isEmpty else { return 0 }
        context.clock.observe(max(watermark, HybridTime(rawValue: header.hlc)))
        for one in refused { try republish(one) }
        context.clock.note()
        return refused.count
    }

    /// A transaction of this node that another node refuses, or will refuse.
    struct Refused {
        var sequence: Int64
        /// Its transaction ID in the history.
        var transactionID: Int64
        var transaction: WireTransaction
    }

    /// - Parameters:
    ///   - watermark: the watermark up to which the other node has collected tombstones.
    ///   - received: the transactions of this node that it has.
    static func refused(_ db: Database, by watermark: HybridTime, received: SequenceSet) throws -> [Refused] {
        var refused: [Refused] = []
        let hasIngested = try NodeDirectory.hasSource(db)
        for range in received.gaps + [(received.applied + 1)...Int64.max] {
            try Outbox.forEach(db, in: range) { entry in
                guard !entry.isReplaced, let beginning = try entry.beginning(db) else { return true }
                // The transactions that follow are later, but for those with the times of another system.
                guard HybridTime(rawValue: beginning.hlc) <= watermark else { return hasIngested }
                guard let whole = try? WireFormat.decode(entry.payload(db)) else { return true }
                refused.append(
                    Refused(sequence: entry.sequence, transactionID: entry.transaction, transaction: whole))
                return true
            }
        }
        return refused
    }

    private func republish(_ refused: Refused) throws {
        let transaction = refused.transaction
        var time = transaction.hlc
        var header = transaction
        header.changes = []
        var wire = OutgoingChanges()
        var changes: [RemoteChange] = []
        for old in transaction.changes {
            time &+= old.clockStep
            let stamp = Stamp(time: HybridTime(rawValue: time), node: transaction.clockedBy)
            guard let standing = try standing(old, stamp) else { continue }
            let now = Stamp(time: context.clock.tick(), node: context.node)
            var change = standing.wire
            change.clockStep = now.time.rawValue
            var own = try RemoteChange(known(change), stamp: now, context: context, takesIgnored: true)
            if !standing.held.isEmpty {
                own.columns += standing.held
                own.shape = nil
            }
            changes.append(own)
            wire.append(change)
        }
        if wire.isEmpty { header.hlc = context.clock.tick().rawValue }
        // This changes only clocks.
        if !changes.isEmpty { try applier.apply(changes) }
        header.clockNode = Data()
        var outbox = try Outbox(db, context)
        // A reader refuses a longer list. A further transaction without changes takes what is left.
        var replaced = (transaction.restates + [UInt64(refused.sequence)])[...]
        while !replaced.isEmpty {
            header.restates = Array(replaced.prefix(InputBounds.maxReplaced))
            try outbox.append(wire, header: header, of: refused.transactionID, as: encoding)
            replaced = replaced.dropFirst(InputBounds.maxReplaced)
            wire = OutgoingChanges()
            if !replaced.isEmpty { header.hlc = context.clock.tick().rawValue }
        }
        try outbox.close()
    }

    /// The part of a change that still counts.
    private struct Standing {
        var wire: WireChange
        /// The columns that refer to a table that is gone here, with their present values. Other nodes may have the
        /// table, so they get the reference as it was.
        var held: [RemoteColumn] = []
    }

    private func refersToUnknownTable(_ column: WireColumn) -> Bool {
        guard case .reference(let reference) = column.value.kind else { return false }
        return context.catalog.entity(reference.entity, reference.formerEntities) == nil
    }

    /// Returns the change without the columns that refer to a table that is gone here.
    private func known(_ wire: WireChange) -> WireChange {
        var known = wire
        known.columns.removeAll(where: refersToUnknownTable)
        return known
    }

    /// Returns the columns of the change that refer to a table that is gone here, and whose value still counts.
    private func held(_ wire: WireChange, _ record: RowRecord, _ entity: Entity, _ stamp: Stamp)
        -> [(wire: WireColumn, own: RemoteColumn)]
    {
        wire.columns.filter(refersToUnknownTable).compactMap { column in
            guard let slot = entity.column(named: column.name)?.slot, let register = record.register(slot),
                register.stamp == stamp
            else { return nil }
            if case .reference = register.value { return nil }
            var republished = column
            republished.replaces = stamp.time.rawValue
            return (wire: republished, own: RemoteColumn(slot: slot, value: register.value, replaces: stamp.time))
        }
    }

    /// Returns the part of the change that still counts. Nil if none does.
    private func standing(_ wire: WireChange, _ stamp: Stamp) throws -> Standing? {
        guard wire.hasIdentity else { return nil }
        let known = known(wire)
        let change: RemoteChange
        do {
            change = try RemoteChange(known, stamp: stamp, context: context, takesIgnored: true)
        } catch is UnknownSchema {
            // The table itself is gone, so nothing of the change counts.
            return nil
        }
        let found = try applier.record(change.table, change.identity)
        var republished = wire
        switch change.kind {
        case .delete:
            // The row is gone. Its tombstone may have been collected here as well, even if a later update of it is
            // pending.
            let deleted = found?.clocks.deleted
            guard found?.clocks.isAlive != true, deleted == nil || deleted == stamp else { return nil }
            republished.replaces = stamp.time.rawValue
            return Standing(wire: republished)
        case .insert, .update:
            guard let record = found, record.clocks.isAlive else { return nil }
            let held = held(wire, record, change.entity, stamp)
            if change.kind == .insert, record.clocks.inserted == stamp {
                let unknown = wire.columns.filter(refersToUnknownTable).compactMap {
                    change.entity.column(named: $0.name)?.name
                }
                republished.columns = try whole(record, change.entity, known, except: unknown) + held.map(\.wire)
                return Standing(wire: republished, held: held.map(\.own))
            }
            // If another insert followed this one, those columns count that the later insert did not set.
            republished.kind = .update
            republished.clearLocalID()
            let columns = change.table.shared(known.columns)
            republished.columns = zip(columns, change.columns).compactMap { column, change in
                guard record.clocks.stamp(of: change.slot) == stamp else { return nil }
                var column = column
                column.replaces = stamp.time.rawValue
                return column
            }
            republished.columns += held.map(\.wire)
            return republished.columns.isEmpty ? nil : Standing(wire: republished, held: held.map(\.own))
        }
    }

    /// Returns the columns of the row as it is now: a node that lacks the row may have discarded later updates of it as
    /// well.
    ///
    /// - Parameter names: Columns to leave out.
    private func whole(_ record: RowRecord, _ entity: Entity, _ wire: WireChange, except names: [String]) throws
        -> [WireColumn]
    {
        try entity.sharedColumns.compactMap { column in
            guard !column.isDropped, !names.contains(column.name), let register = record.register(column.slot),
                register.stamp.node != .unpublished
            else { return nil }
            var republished = wire.columns.first { $0.name == column.name } ?? WireColumn()
            republished.name = column.name
            republished.value = try WireValue(register.value)
            republished.replaces = register.stamp.time.rawValue
            return republished
        }
    }
}

extension Republication {
    /// Republishes transactions that the sender of a message refuses for their age, or will refuse.
    ///
    /// - Returns: how many transactions those were. 0 if this node doesn't have all transactions yet that the sender
    ///   has, or if the sender's clock is too far ahead.
    static func answer(_ message: AntiEntropyMessage, _ engine: SyncEngine) throws -> Int {
        let session = engine.session
        let header = message.wire.header
        let watermark = HybridTime(rawValue: header.collected)
        let ahead = HybridTime(rawValue: header.hlc).milliseconds - session.now()
        guard watermark > .zero, ahead <= session.maxClockSkew else { return 0 }
        let received = message.vector.sets[session.node] ?? SequenceSet(applied: 0, gaps: [])
        let isRefused = try session.read { try !refused($0, by: watermark, received: received).isEmpty }
        guard isRefused else { return 0 }
        return try session.transaction { db, context in
            guard try AntiEntropyReader.isReady(db) else { return 0 }
            var here = try VersionVector(context.origins(db))
            // Transactions that this node refuses in turn are republished by their authors, and don't arrive otherwise.
            for envelope in try LateTransactions.quarantined(db, context, engine.messageGuard) {
                here.add(envelope.origin, envelope.sequence)
            }
            guard here.covers(message.vector) else { return 0 }
            let count = try Republication(db, context, encoding: session.configuration.encoding)
                .run(header, received: received)
            if count > 0 {
                try context.applied.close(
                    db, mark: TransactionMark(author: TransactionAuthor.sync, context: "restated"))
            }
            return count
        }
    }
}

extension VersionVector {
    fileprivate mutating func add(_ node: NodeID, _ sequence: Int64) {
        let one = SequenceSet(applied: sequence, gaps: sequence > 1 ? [1...(sequence - 1)] : [])
        sets[node] = sets[node].map { $0.union(one) } ?? one
    }
}
