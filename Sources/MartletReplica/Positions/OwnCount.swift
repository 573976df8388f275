package import GRDB
package import MartletCore
import MartletStore

/// Tracks which of this node's transactions were read back from the topic. Up to the sequence `confirmed`, all of them
/// were. If the topic may have lost some, they are counted again: until that is done, the node's partitions are read
/// from their beginnings. The only code that changes `confirmed` and `rescan`.
package struct OwnCount {
    private let connection: WriterConnection

    package init(_ connection: WriterConnection) {
        self.connection = connection
    }

    /// Returns the sequence up to which all transactions of this node were read back from the topic.
    package func confirmed() throws -> Int64 { try connection.read(Self.confirmed) }

    package static func confirmed(_ db: Database) throws -> Int64 { try Meta.integer(db, SyncMeta.confirmed) ?? 0 }

    /// Counts everything up to this sequence as read back from the topic.
    package func confirm(through sequence: Int64) throws {
        try connection.write { db in
            guard try Self.confirmed(db) < sequence else { return }
            try Meta.set(db, SyncMeta.confirmed, sequence)
            try Chunks.delete(db, of: connection.node, through: sequence)
        }
    }

    /// A whole transaction of this node was read back. It counts if all before it were: after a gap, the broker may
    /// have lost what it acknowledged, and continued behind it.
    package static func noteRead(_ db: Database, _ meta: MetaValues, _ sequence: Int64, after confirmed: Int64) throws {
        if confirmed == sequence - 1 { try meta.set(db, SyncMeta.confirmed, sequence) }
    }

    /// Returns true while the count runs, also after a crash interrupted it.
    package func isUnderWay() throws -> Bool {
        try connection.read { try Meta.integer($0, SyncMeta.rescan) == 1 }
    }

    package func end() throws {
        try connection.writeMeta { db in
            try Meta.set(db, SyncMeta.rescan, 0)
            try Meta.set(db, SyncMeta.rescanResumes, 0)
        }
    }

    /// Returns true if the store says all that the count has found so far, so that another process can continue it at
    /// the stored offsets: exactly the transactions up to the confirmed one.
    package func canResume() throws -> Bool {
        try connection.read { db in
            try Meta.integer(db, SyncMeta.rescanResumes) == 1 && Chunks.count(db, of: connection.node) == 0
        }
    }

    /// Forgets which of this node's transactions were read back. From now on, those in a snapshot and those that are
    /// read again count. Only the caller knows the former.
    package func restart() throws {
        try connection.writeMeta { try Self.restart($0, node: connection.node, resumes: false) }
    }

    /// - Parameter resumes: true if reading begins at the first offsets, and nothing else counts.
    package static func restart(_ db: Database, node: NodeID, resumes: Bool) throws {
        try Chunks.delete(db, of: node)
        try Meta.set(db, SyncMeta.confirmed, 0)
        try Meta.set(db, SyncMeta.rescan, 1)
        try Meta.set(db, SyncMeta.rescanResumes, resumes ? 1 : 0)
    }

    /// Notes that a transaction was read whose predecessor has not been.
    package static func noteHole(_ db: Database, _ meta: MetaValues) throws {
        guard try meta(db, SyncMeta.rescanResumes) == 1 else { return }
        try meta.set(db, SyncMeta.rescanResumes, 0)
    }

    /// Forgets all of it, since this node continues under another ID.
    package static func forget(_ db: Database) throws {
        try Meta.set(db, SyncMeta.confirmed, 0)
        try Meta.set(db, SyncMeta.ownPartitions, nil as String?)
        try Meta.set(db, SyncMeta.rescan, 0)
        try Meta.set(db, SyncMeta.rescanResumes, 0)
    }

    /// Returns the partitions in which this node's transactions were seen.
    package func partitions() throws -> Set<Int32> {
        try connection.read { try OwnPartitions.load($0) }
    }

    /// Returns the transactions that neither the topic nor the outbox has any more.
    package func unkept() throws -> [UnretainedTransactions] {
        try connection.read(UnretainedRanges.load)
    }

    /// Stops publishing these transactions, and counts them as read back.
    package func giveUp(_ ranges: [ClosedRange<Int64>]) throws {
        try connection.writeMeta { try UnretainedRanges.add($0, ranges, at: connection.now()) }
    }
}
