import Foundation
import GRDB
import MartletCore
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// Adopts the configured filters.
struct FilterChange {
    let session: ReplicaSession

    /// How many rows are moved in one transaction, in which other writers wait.
    private static let batchRows = 500

    /// Adopts the configured filters, and applies the consequences of the change: publishes what they no longer keep on
    /// this node, applies pending rows that they now accept, and takes rows that they no longer accept out of their
    /// tables.
    ///
    /// If a crash interrupts this, the next start completes it.
    ///
    /// - Parameter configured: nil keeps the filters that the store has.
    func adopt(_ configured: SyncFilters?) throws {
        let (stored, isUnfinished) = try session.read { db in
            (try SyncFilters.load(db), try Meta.text(db, SyncMeta.formerFilters) != nil)
        }
        // Rows were written under these filters already, so their consequences come first, whatever follows.
        if isUnfinished { try finishAdopting(stored) }
        guard let wanted = configured, wanted != stored else { return }
        try session.read { try wanted.check($0, Catalog.load($0)) }
        // Changes that were written until now are enqueued under the former filters.
        try session.transaction { db, _ in
            try stored.save(db, as: SyncMeta.formerFilters)
            try wanted.save(db)
            try UnmentionedRows.forget(db)
        }
        try finishAdopting(wanted)
    }

    /// Applies the consequences of filters that the store has already.
    private func finishAdopting(_ filters: SyncFilters) throws {
        try session.forgetContext()
        try followFilters(filters)
        try session.writeMeta { db in
            try Meta.set(db, SyncMeta.formerFilters, nil as String?)
            if filters.ignoredTables.isEmpty { try Meta.set(db, SyncMeta.unpublishedOfKnown, nil as Int64?) }
        }
        try session.forgetContext()
    }

    private func followFilters(_ wanted: SyncFilters) throws {
        let former = try session.read { try SyncFilters.load($0, SyncMeta.formerFilters) }
        // Changes that were pending because their table was ignored apply with the first transaction on the new
        // context.
        let entities = try session.transaction { _, context in
            let names = wanted.tables.union(former.tables).sorted()
            let ids = Set(names.flatMap { context.catalog.entities(everNamed: $0) }.map(\.id))
            return context.catalog.entities.filter { ids.contains($0.id) }
        }
        for entity in entities {
            try changeRows(try leaving(entity)) { name, context, applier in
                try applier.leaveIfFiltered(context.table(entity), name)
            }
            try changeRows(try entering(entity)) { name, _, applier in
                try applier.retry(RowIdentity(entity: entity.id, identity: name))
                try applier.settle()
            }
            try release(entity, former.localSlots(entity).subtracting(wanted.localSlots(entity)))
        }
    }

    /// Returns the rows that are in their table but should not be.
    private func leaving(_ entity: Entity) throws -> [StableID] {
        try readFiltered { db, context in
            guard context.filters[entity]?.subscribe != nil else { return [] }
            var names: [StableID] = []
            try SnapshotRowEncoder(db, context).forEachRecord(of: context.table(entity).entity) { record in
                let isTaken = try context.filters.takes(entity, record.clocks, record.values, node: context.node)
                if !isTaken { names.append(record.identity) }
            }
            return names
        }
    }

    /// Returns the rows that a filter holds back.
    private func entering(_ entity: Entity) throws -> [StableID] {
        try readFiltered { db, context in
            try PendingRows(db: db, context: context).waiting(entity.id, .filtered).map(\.identity)
        }
    }

    /// Returns the rows that are unpublished, at least in part, and may be published now.
    ///
    /// - Parameter slots: the columns that are no longer local.
    private func released(_ entity: Entity, _ slots: Set<Int>) throws -> [StableID] {
        try readFiltered { db, context in
            let rule = context.filters[entity]
            guard !(rule?.isIgnored ?? false) else { return [] }
            var names: [StableID] = []
            let table = context.table(entity)
            func look(_ record: RowRecord) throws {
                let isOwn = slots.contains { record.clocks.stamp(of: $0)?.node == context.node }
                guard record.clocks.hasUnpublished || isOwn else { return }
                if record.clocks.isUnpublished, try !(rule?.publish?.holds(record.values) ?? true) { return }
                names.append(record.identity)
            }
            try SnapshotRowEncoder(db, context).forEachRecord(of: table.entity, look)
            try PendingRows(db: db, context: context).forEachAbsent(from: table, look)
            try context.tombstones.forEach(db, of: entity.id, by: .unpublished) { name in
                if try table.find(db, name) == nil { names.append(name) }
            }
            return names
        }
    }

    /// Runs `body` in a transaction that changes nothing but, perhaps, the number of `NodeID.unpublished`.
    private func readFiltered<T>(_ body: (Database, ReplicaContext) throws -> T) throws -> T {
        try session.transaction(body)
    }

    private func changeRows(
        _ names: [StableID], _ body: (StableID, ReplicaContext, Applier) throws -> Void
    ) throws {
        for first in stride(from: 0, to: names.count, by: Self.batchRows) {
            try session.transaction { db, context in
                let applier = Applier(db, context)
                for name in names[first..<min(names.count, first + Self.batchRows)] {
                    try body(name, context, applier)
                }
                try applier.settle()
                try context.applied.close(
                    db, mark: TransactionMark(author: TransactionAuthor.sync, context: "filter"))
            }
        }
    }

    /// Publishes what was unpublished, a limited number of rows in each transaction.
    private func release(_ entity: Entity, _ slots: Set<Int>) throws {
        let names = try released(entity, slots)
        for first in stride(from: 0, to: names.count, by: Self.batchRows) {
            try session.transaction { db, context in
                var changes: [WireChange] = []
                let unpublished = UnpublishedChanges(db, context)
                let table = context.table(entity)
                for name in names[first..<min(names.count, first + Self.batchRows)] {
                    let own = try slots.filter { slot in
                        try Applier(db, context).record(table, name)?.clocks.stamp(of: slot)?.node == context.node
                    }
                    let stamp = Stamp(time: context.clock.tick(), node: context.node)
                    if let change = try unpublished.release(table, name, at: stamp, with: own) {
                        changes.append(change)
                    }
                }
                try Outbox.publish(changes, db, context, as: session.configuration.encoding)
            }
        }
    }
}
