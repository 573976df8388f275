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
    package func withContext<T>(_ body: (Database, EngineContext) throws -> T) throws -> T {
        try store.read { db in try body(db, EngineContext(db, now: { 0 })) }
    }

    /// The reading of the node's hybrid logical clock that is stored.
    package func hybridTime() throws -> HybridTime {
        try store.read { db in
            HybridTime(rawValue: UInt64(bitPattern: try Meta.integer(db, SyncMeta.clock) ?? 0))
        }
    }

    /// The last place in the log up to which all changes have their stamps.
    package func stampedThrough() throws -> Int64 {
        try store.read { try Meta.integer($0, MetaKey.stamped) } ?? 0
    }
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
