import Foundation
package import GRDB
import MartletCore
package import MartletReplica
package import MartletStore

/// Reads the outbox on a connection of its own, so that publishing and applying don't wait for each other.
///
/// Used by one thread at a time.
package final class OutboxReader: Sendable {
    private let database: DatabaseQueue
    private let readsContexts: Bool
    // Safe because it is only touched on the connection's queue. Nobody reads while the reader is closed: closing takes
    // the last reference.
    nonisolated(unsafe) private var statement: PreparedStatement?

    /// - Parameter readsContexts: whether entries include the context of their transaction.
    package init(path: String, store: StoreConfiguration, readsContexts: Bool = false) throws {
        self.readsContexts = readsContexts
        database = try Connection.open(path: path, configuration: store, role: .reader)
    }

    /// Returns the entries after this sequence, as many as fit into the bytes; at least one, if there is one.
    package func entries(after sequence: Int64, maxBytes: Int, maxCount: Int) throws -> [OutboxEntry] {
        // A single statement is its own transaction.
        try read { db in
            let read = try kept(&statement, db, readsContexts ? Self.queryWithContext : Self.query)
            read.bind(1, sequence)
            read.bind(2, Int64(maxCount))
            defer { read.reset() }
            var entries: [OutboxEntry] = []
            var bytes = 0
            while bytes < maxBytes, try read.step() {
                let payload = read.blob(1)
                bytes += payload.count
                let context = readsContexts ? read.optionalText(2) : nil
                entries.append(OutboxEntry(sequence: read.integer(0), payload: payload, context: context))
                // A payload in parts fills the room by itself.
                if payload.isEmpty { break }
            }
            return entries
        }
    }

    /// Returns the payload of an entry. If it is stored in parts, they are read on demand.
    package func open(_ entry: OutboxEntry) throws -> OutboxPayload {
        guard entry.payload.isEmpty else {
            return OutboxPayload(sequence: entry.sequence, stored: entry.payload)
        }
        return try read { try OutboxPayload($0, sequence: entry.sequence) }
    }

    package func bytes(_ range: Range<Int>, of payload: inout OutboxPayload) throws -> [UInt8] {
        if let stored = payload.stored { return range == stored.indices ? stored : Array(stored[range]) }
        return try read { try payload.bytes(range, $0) }
    }

    private func read<T>(_ body: (Database) throws -> T) throws -> T {
        do {
            return try database.inDatabase(body)
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    private static let query = """
        SELECT sequence, payload FROM _martlet_outbox WHERE sequence > ?1 AND \(Unkept.isKept)
        ORDER BY sequence LIMIT ?2
        """

    /// Republished changes, and rows that a filter releases, share the log transaction of an earlier entry. Its context
    /// doesn't belong to them.
    private static let queryWithContext = """
        SELECT o.sequence, o.payload, l.c2 FROM _martlet_outbox o
        LEFT JOIN \(InternalName.log) l ON l.id = o.txn AND l.e = 0 AND l.c4 IS NULL
          AND NOT EXISTS (SELECT 1 FROM _martlet_outbox p WHERE p.sequence = o.sequence - 1 AND p.txn >= o.txn)
        WHERE o.sequence > ?1
        AND NOT EXISTS (SELECT 1 FROM _martlet_unkept AS u WHERE o.sequence BETWEEN u.first AND u.last)
        ORDER BY o.sequence LIMIT ?2
        """

    deinit {
        // SQLite doesn't close a connection that has compiled statements.
        database.inDatabase { _ in statement = nil }
        try? database.close()
    }
}

extension SyncEngine {
    /// Returns the last sequence that the broker has acknowledged, with all before it.
    public func acknowledged() throws -> Int64 {
        try read { try Meta.integer($0, SyncMeta.acknowledged) ?? 0 }
    }

    /// Returns the sequence up to which all local transactions were read back from the topic.
    public func confirmed() throws -> Int64 {
        try read { try Meta.integer($0, SyncMeta.confirmed) ?? 0 }
    }

    /// Returns approximately how many rows of the history have no message yet.
    package func unregisteredRows() throws -> Int64 {
        try read { db in
            let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(InternalName.log)") ?? 0
            return try max(0, last - (Meta.integer(db, MetaKey.registered) ?? 0))
        }
    }

    /// Stores that the broker has acknowledged everything up to this sequence. The history up to there may be deleted.
    package func acknowledge(through sequence: Int64) throws {
        try setAcknowledged(sequence)
    }

    /// Republishes everything after this sequence, because the topic has lost it. Receivers drop duplicates.
    ///
    /// - Returns: the sequence after which publishing begins. What has left the outbox can't be sent again.
    package func rewindPublisher(to sequence: Int64) throws -> Int64 {
        let first = try read { db in
            try Int64.fetchOne(db, sql: "SELECT min(sequence) FROM _martlet_outbox") ?? Meta.integer(
                db, SyncMeta.nextSequence) ?? 1
        }
        let kept = max(sequence, first - 1)
        try setAcknowledged(kept)
        // Counts what can't be sent again as confirmed, so that nobody waits for it.
        if kept > sequence { try confirm(through: kept) }
        return kept
    }

    /// Counts everything up to this sequence as read back from the topic.
    package func confirm(through sequence: Int64) throws {
        try write { db in
            let known = try Meta.integer(db, SyncMeta.confirmed) ?? 0
            guard known < sequence else { return }
            try Meta.set(db, SyncMeta.confirmed, sequence)
            try OwnChunks.forget(db, node, through: sequence)
        }
    }

    private func setAcknowledged(_ sequence: Int64) throws {
        try write { db in
            try Meta.set(db, SyncMeta.acknowledged, sequence)
            try placePublisherCursor(db)
        }
    }

    /// Puts the publisher's cursor before the first transaction that is not acknowledged. If there is none, puts it
    /// past everything that has its clocks: remote transactions are not for the publisher, and otherwise a node that
    /// only reads would keep its history for ever.
    package func placePublisherCursor(_ db: Database) throws {
        let next = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT txn FROM _martlet_outbox WHERE sequence > ? ORDER BY sequence LIMIT 1"),
            arguments: [try Meta.integer(db, SyncMeta.acknowledged) ?? 0])
        let registered = try Meta.integer(db, MetaKey.registered) ?? 0
        try Cursors.set(db, Cursors.publisher, next.map { $0 - 1 } ?? registered)
    }

    /// Deletes published messages whose history was deleted.
    @discardableResult
    public func trimOutbox() throws -> Int {
        var count = 0
        while true {
            let (trimmed, hasMore) = try write { try Outbox.trim($0) }
            count += trimmed
            if !hasMore { return count }
        }
    }
}

/// The messages of this node's transactions, as they are sent.
package enum Outbox {
    /// Deletes published messages whose history was deleted. For callers without an engine.
    package static func trim(_ store: Store) throws {
        while try store.writeOwnTables({ db in
            try Meta.integer(db, SyncMeta.format) != nil && trim(db).hasMore
        }) {}
    }

    /// About how many bytes one transaction deletes, in which other writers wait.
    private static let batchBytes = 8 << 20

    /// Deletes some of them.
    ///
    /// - Returns: how many entries were deleted, and whether there may be more to delete.
    package static func trim(_ db: Database) throws -> (count: Int, hasMore: Bool) {
        let acknowledged = try Meta.integer(db, SyncMeta.acknowledged) ?? 0
        let pruned = try Meta.integer(db, MetaKey.prunedThrough) ?? 0
        // Parts whose entry is gone. Not those of a transaction that is being enqueued: its entry is not in the outbox
        // yet.
        let parts = try Row.fetchAll(
            db,
            sql: """
                SELECT rowid, length(bytes) AS size FROM _martlet_outbox_parts
                WHERE sequence <= ? AND sequence NOT IN (SELECT sequence FROM _martlet_outbox) LIMIT 1000
                """, arguments: [acknowledged])
        var bytes = 0
        for part in parts where bytes < batchBytes {
            bytes += part["size"]
            let place: Int64 = part["rowid"]
            try db.execute(sql: "DELETE FROM _martlet_outbox_parts WHERE rowid = ?", arguments: [place])
        }
        guard parts.isEmpty else { return (0, true) }
        // Usually there is nothing to delete, and the oldest entry shows that.
        let oldest = try Int64.fetchOne(db, sql: "SELECT txn FROM _martlet_outbox ORDER BY sequence LIMIT 1")
        guard let oldest, oldest <= pruned else { return (0, false) }
        let entries = try Row.fetchCursor(
            db,
            sql: """
                SELECT sequence, length(payload) AS size FROM _martlet_outbox WHERE sequence <= ? AND txn <= ?
                ORDER BY sequence LIMIT 10000
                """, arguments: [acknowledged, pruned])
        var last: Int64?
        while bytes < batchBytes, let entry = try entries.next() {
            last = entry["sequence"]
            bytes += entry["size"]
        }
        guard let last else { return (0, false) }
        try db.execute(
            sql: "DELETE FROM _martlet_outbox WHERE sequence <= ? AND txn <= ?", arguments: [last, pruned])
        return (db.changesCount, true)
    }
}
