import Foundation
package import GRDB
import MartletCore
import MartletMerge
package import MartletStore
package import MartletWire

/// The rows that a snapshot does not mention. If its maker has collected tombstones, these rows were deleted, and their
/// tombstones collected.
///
/// Kept in the store while the snapshot is loaded, part by part.
package struct UnmentionedRows {
    package let db: Database
    package let context: ReplicaContext

    package init(db: Database, context: ReplicaContext) {
        self.db = db
        self.context = context
    }

    /// Starts with all rows that the maker must have had.
    ///
    /// - Parameter unseen: the stamps of this node's changes that the maker had not seen.
    package func begin(_ header: WireSnapshotHeader, unseen: UnseenStamps) throws {
        try db.execute(sql: "DELETE FROM _martlet_unmentioned")
        guard header.collected > 0 else { return }
        let watermark = HybridTime(rawValue: header.collected)
        let reader = try RecordReader(db, context)
        let complete = completeTables(header)
        for entity in context.catalog.entities where complete.contains(entity.id) {
            try reader.forEach(entity) { record in
                // Rows from before the tracking of their table were never published.
                guard record.clocks.isAlive, let inserted = record.clocks.inserted, inserted != .zero,
                    inserted.time <= watermark, !unseen.contains(inserted)
                else { return }
                let add = try context.statement(
                    db, "INSERT OR IGNORE INTO _martlet_unmentioned(entity, ident) VALUES (?1, ?2)")
                add.bind(1, entity.id)
                add.bind(2, blob: record.identity.bytes)
                try add.run()
            }
        }
    }

    /// Returns the tables of which the maker has all rows, and this node takes them. Rows of a table that either of
    /// them ignores, or that the maker doesn't have, are not mentioned although they exist.
    private func completeTables(_ header: WireSnapshotHeader) -> Set<Int64> {
        func tables(_ entities: [WireSnapshotEntity]) -> Set<Int64> {
            Set(entities.compactMap { context.table(named: $0.name, $0.formerNames)?.entity.id })
        }
        let ignored = tables(header.entities.filter(\.ignored)).union(context.filters.ignored)
        return tables(header.entities).subtracting(ignored)
    }

    /// Forgets the rows: the filters have changed, and with them what is mentioned. A check finds what was deleted.
    package static func forget(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM _martlet_unmentioned")
    }

    /// Returns true if there are rows that the snapshot has not mentioned so far, and may still.
    package func areAny() throws -> Bool {
        try context.statement(db, "SELECT EXISTS (SELECT 1 FROM _martlet_unmentioned)").first { $0.integer(0) != 0 }
            ?? false
    }

    package func mention(_ changes: [RemoteChange]) throws {
        for change in changes {
            let remove = try context.statement(
                db, "DELETE FROM _martlet_unmentioned WHERE entity = ?1 AND ident = ?2")
            remove.bind(1, change.entity.id)
            remove.bind(2, blob: change.identity.bytes)
            try remove.run()
        }
    }

    /// Removes the rows that are left. They leave no tombstones: changes from that time are refused from now on.
    package func finish(_ header: WireSnapshotHeader) throws {
        let watermark = HybridTime(rawValue: header.collected)
        let left = try Row.fetchAll(db, sql: "SELECT entity, ident FROM _martlet_unmentioned").map { row in
            (row["entity"] as Int64, StableID(bytes: row.bytes("ident")))
        }
        let applier = Applier(db, context)
        let removed = try left.filter { entity, identity in
            guard let entity = context.catalog[entity] else { return false }
            // The row was inserted again meanwhile.
            guard let record = try applier.record(context.table(entity), identity),
                let inserted = record.clocks.inserted,
                inserted.time <= watermark
            else { return false }
            return true
        }
        try applier.remove(removed.compactMap { entity, identity in context.catalog[entity].map { ($0, identity) } })
        try db.execute(sql: "DELETE FROM _martlet_unmentioned")
        try context.collected.advance(db, to: watermark)
    }
}

extension ReplicaContext {
    /// Returns true if the sender of a message may still have rows whose tombstones were collected here. A node that
    /// has collected as much, or that has all transactions that this node has, can't.
    package func knowsLess(_ db: Database, _ header: WireSnapshotHeader) throws -> Bool {
        guard header.collected < collected.time.rawValue else { return false }
        var here = try VersionVector(origins(db))
        // Of this node's own transactions, those count whose tombstones may have been collected here: the broker has
        // acknowledged them, and they are not after the watermark. If the first one that the sender lacks is after the
        // watermark, so are all that follow it, and the sender has all that count. What was ingested has other times.
        let acknowledged = try meta(db, SyncMeta.acknowledged) ?? 0
        let lacking = try firstLacking(in: header)
        let first = try firstOwn(db, from: lacking)
        let isLater =
            try !NodeDirectory.hasSource(db)
            && first.map { $0.sequence == lacking && lacking <= acknowledged && $0.time > collected.time } ?? false
        here.sets[node] = SequenceSet(applied: isLater ? lacking - 1 : acknowledged, gaps: [])
        return try !VersionVector(header.origins).covers(here)
    }

    /// Returns the sequence of the first of this node's transactions that the sender of a message lacked or did not
    /// know.
    package func firstLacking(in header: WireSnapshotHeader) throws -> Int64 {
        guard let own = header.origins.first(where: { NodeID(bytes: $0.node) == node }) else { return 1 }
        let set = try SequenceSet(own)
        return set.gaps.first?.lowerBound ?? set.applied + 1
    }
}

extension Applier {
    /// Returns true if the row is not in this store, and the change has no stamp after this node's watermark: the row
    /// was deleted, or the change belongs to a transaction that was refused.
    ///
    /// - Parameters:
    ///   - knowsLess: whether the sender knows less than this node; see ``ReplicaContext/knowsLess(_:_:)``.
    ///   - seeksLost: true to tell such rows from those that were lost from the file and left their clocks.
    package func hasCollected(_ change: RemoteChange, knowsLess: Bool, seeksLost: Bool = false) throws -> Bool {
        guard context.collected.time > .zero, let clocks = change.state?.clocks,
            clocks.isBefore(context.collected.time),
            !clocks.isAlive || knowsLess,
            try record(change.table, change.identity) == nil
        else { return false }
        return try !seeksLost || !change.table.hasTrace(db, change.identity)
    }

    /// Removes rows as if they had been deleted, without leaving tombstones.
    package func remove(_ rows: [(entity: Entity, identity: StableID)]) throws {
        for (entity, identity) in rows {
            let table = context.table(entity)
            if let found = try table.find(db, identity) { _ = try evict(table, found, identity) }
            try pendingRows.remove(try pendingRows.load(table, identity))
        }
        try settle()
    }
}
