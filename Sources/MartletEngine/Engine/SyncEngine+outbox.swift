import Foundation
package import GRDB
import MartletCore
import MartletReplica
import MartletStore

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
    package func unstampedRows() throws -> Int64 {
        try read { Int64(try UnstampedChanges.range($0)?.count ?? 0) }
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
            try Outbox.firstSequence(db) ?? Outbox.lastSequence(db) + 1
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
            try Chunks.delete(db, of: node, through: sequence)
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
        let next = try Outbox.firstTransaction(db, after: Meta.integer(db, SyncMeta.acknowledged) ?? 0)
        let stamped = try Meta.integer(db, MetaKey.stamped) ?? 0
        try Cursors.set(db, Cursors.publisher, next.map { $0 - 1 } ?? stamped)
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
