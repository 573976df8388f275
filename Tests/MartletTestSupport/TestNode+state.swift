package import GRDB
package import MartletStore
package import MartletSync

/// What the node's store holds beside the user's tables: read through the public API, or where that doesn't have it,
/// through the repository that owns the table.
extension TestNode {
    package func status() throws -> SyncStatus { try SyncStatus.read(store) }

    /// The sequences that have not arrived, of all origins.
    package func gaps() throws -> [ClosedRange<Int64>] { try status().origins.flatMap(\.gaps) }

    // MARK: Pending changes

    /// The rows that can't be in their table yet, or not with all of their values.
    package func pendingRows() throws -> [ParkedItem] { try pending("r") }

    /// The references whose column is NULL until their target arrives.
    package func pendingReferences() throws -> [ParkedItem] { try pending("p") }

    /// The messages that wait as a whole, or for one of their changes.
    package func pendingMessages() throws -> [ParkedItem] { try pending("t") }

    /// - Parameter kind: how the IDs of such items begin; see ``/MartletReplica/ParkedItem/id``.
    private func pending(_ kind: Character) throws -> [ParkedItem] {
        try store.parked(includingDeleted: true).filter { $0.id.first == kind }
    }

    /// The pending rows and references, in a form that is equal on nodes that know the same.
    ///
    /// - Parameter isIncluded: which pending rows to include.
    package func waiting(where isIncluded: (ParkedItem) -> Bool = { _ in true }) throws -> [String] {
        let rows = try pendingRows().filter(isIncluded).map { item in
            "row \(item.entity ?? "?") \(item.identity?.bytes ?? []) \(item.reason)"
        }
        let references = try pendingReferences().map { item in
            "reference \(item.entity ?? "?") \(item.identity?.bytes ?? []) \(item.values)"
        }
        return rows.sorted() + references.sorted()
    }

    // MARK: Messages

    /// The transactions in the outbox, ascending.
    package func outbox() throws -> [Outbox.Entry] {
        try store.read { db in
            var entries: [Outbox.Entry] = []
            try Outbox.forEach(db) { entry in
                entries.append(entry)
                return true
            }
            return entries
        }
    }

    /// How many parts the outbox has of the messages that took several commits to enqueue, by sequence.
    package func outboxParts() throws -> [Int64: Int] {
        try store.read { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT sequence, count(*) AS parts FROM _martlet_outbox_parts GROUP BY sequence")
            return Dictionary(uniqueKeysWithValues: rows.map { ($0["sequence"] as Int64, $0["parts"] as Int) })
        }
    }

    /// The chunks of transactions that are not complete.
    package func chunks() throws -> [StoredChunk] {
        try store.read { db in
            try Row.fetchAll(db, sql: ChunkTally.query).map { row in
                StoredChunk(
                    origin: NodeID(bytes: row.bytes("origin")), sequence: row["sequence"], count: row["count"],
                    bytes: row["bytes"])
            }
        }
    }

    /// The nodes that have said in checks how far they are.
    package func members() throws -> [Members.Member] {
        try store.read(Members.all).filter { $0.sequence != nil }
    }

    // MARK: Rows and clocks

    /// The tracked table with this name.
    package func entity(_ name: String) throws -> Entity {
        guard let entity = try store.trackedEntities().first(where: { $0.name == name }) else {
            throw TestFailure("\(name) is not tracked on \(self.name)")
        }
        return entity
    }

    /// When which rows were deleted, in the order of tables and stable IDs.
    package func tombstones() throws -> [Tombstones.Entry] {
        try store.read { db in
            var entries: [Tombstones.Entry] = []
            try Tombstones(db, NodeDirectory(db), StatementCache()).forEach(db, after: 0, [], limit: .max) {
                entries.append($0)
            }
            return entries
        }
    }

    /// Everything that the node knows of a table's rows, present, pending and deleted ones, in no certain order.
    package func records(of table: String) throws -> [RowRecord] {
        let tracked = try entity(table)
        return try withContext { db, context in
            var records: [RowRecord] = []
            try RecordReader(db, context).forEach(tracked) { records.append($0) }
            return records
        }
    }

    /// Reads with the state that an engine would find if it started now.
    package func withContext<T>(_ body: (Database, ReplicaContext) throws -> T) throws -> T {
        try store.read { db in try body(db, ReplicaContext(db, now: { 0 })) }
    }

    /// The reading of the node's hybrid logical clock that is stored.
    package func hybridTime() throws -> HybridTime {
        HybridTime(rawValue: UInt64(bitPattern: try value(named: SyncMeta.clock) ?? 0))
    }

    /// The last place in the log up to which all changes have their stamps.
    package func stampedThrough() throws -> Int64 { try value(named: MetaKey.stamped) ?? 0 }

    /// The number of rows in the log: changes, and the marks that make them transactions.
    package func logRowCount() throws -> Int {
        try store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(InternalName.log)") } ?? 0
    }

    /// One of the store's named numbers; see ``/MartletStore/MetaKey`` and ``/MartletReplica/SyncMeta``.
    package func value(named key: String) throws -> Int64? { try store.read { try Meta.integer($0, key) } }
}

/// A chunk of a transaction that is not complete.
package struct StoredChunk: Equatable {
    /// Nil if the store's value is no node ID.
    package var origin: NodeID?
    package var sequence: Int64
    /// The number of chunks of the whole transaction.
    package var count: Int
    /// The size of this chunk.
    package var bytes: Int
}

extension ParkedItem {
    /// The reason and, if there is one, the detail, for expectations: `unknownSchema: column trip.city`.
    package var text: String { reason.rawValue + (detail.map { ": \($0)" } ?? "") }
}
