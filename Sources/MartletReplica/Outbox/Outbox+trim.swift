package import GRDB
package import MartletStore

extension Outbox {
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
