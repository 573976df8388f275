package import GRDB
import MartletStore

/// How far this node's transactions are acknowledged by the broker. The only code that changes `acknowledged`, except
/// for a fork. See also ``OwnCount``.
package struct PublishProgress {
    private let connection: WriterConnection

    package init(_ connection: WriterConnection) {
        self.connection = connection
    }

    /// Returns the last sequence that the broker has acknowledged, with all before it.
    package func acknowledged() throws -> Int64 {
        try connection.read { try Meta.integer($0, SyncMeta.acknowledged) ?? 0 }
    }

    /// Returns approximately how many rows of the history have no message yet.
    package func unstampedRows() throws -> Int64 {
        try connection.read { Int64(try UnstampedChanges.range($0)?.count ?? 0) }
    }

    /// Stores that the broker has acknowledged everything up to this sequence, and nothing after it. The history up to
    /// there may be deleted.
    package func acknowledge(through sequence: Int64) throws {
        try connection.write { db in
            try Meta.set(db, SyncMeta.acknowledged, sequence)
            try Self.placeCursor(db)
        }
    }

    /// Republishes everything after this sequence, because the topic has lost it. Receivers drop duplicates.
    ///
    /// - Returns: the sequence after which publishing begins. What has left the outbox can't be sent again.
    package func rewind(to sequence: Int64) throws -> Int64 {
        let first = try connection.read { db in
            try Outbox.firstSequence(db) ?? Outbox.lastSequence(db) + 1
        }
        let kept = max(sequence, first - 1)
        try acknowledge(through: kept)
        // Counts what can't be sent again as confirmed, so that nobody waits for it.
        if kept > sequence { try OwnCount(connection).confirm(through: kept) }
        return kept
    }

    /// Puts the publisher's cursor before the first transaction that is not acknowledged. If there is none, puts it
    /// past everything that has its clocks: remote transactions are not for the publisher, and otherwise a node that
    /// only reads would keep its history for ever.
    package static func placeCursor(_ db: Database) throws {
        let next = try Outbox.firstTransaction(db, after: Meta.integer(db, SyncMeta.acknowledged) ?? 0)
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        try Cursors.set(db, Cursors.publisher, next.map { $0 - 1 } ?? stamped)
    }

    /// Deletes published messages whose history was deleted.
    package func trim() throws -> Int {
        var count = 0
        while true {
            let (trimmed, hasMore) = try connection.write { try Outbox.trim($0) }
            count += trimmed
            if !hasMore { return count }
        }
    }
}
