import GRDB
public import MartletBus
import MartletReplica
import MartletStore

extension SyncEngine {
    /// Returns the next offset to read in each partition of the topic.
    public func offsets(topic: String) throws -> [PartitionPosition] {
        try read { try ReadProgress.offsets($0, of: topic) }
    }

    /// The same, but only for partitions whose last read message is known.
    package func knownOffsets(topic: String) throws -> [PartitionPosition] {
        try read { try ReadProgress.knownOffsets($0, of: topic) }
    }

    /// Continues reading the partitions at these offsets, because what was read there before no longer exists. Messages
    /// that arrive again are recognized by origin and sequence, and dropped.
    ///
    /// - Parameter forgetsOwn: true to forget which of this node's transactions were read back, and count again from
    ///   now on.
    package func resetOffsets(topic: String, to positions: [PartitionPosition], forgetsOwn: Bool) throws {
        try mapErrors {
            try database.write { db in
                for position in positions { try ReadProgress.setOffset(db, topic, position) }
                if forgetsOwn { try forgetOwn(db) }
            }
        }
    }

    /// Forgets which of this node's transactions were read back. From now on, those in a snapshot and those that are
    /// read again count.
    package func recountOwn() throws {
        try mapErrors { try database.write { try forgetOwn($0) } }
    }

    private func forgetOwn(_ db: Database) throws {
        try Chunks.delete(db, of: node)
        try Meta.set(db, SyncMeta.confirmed, 0)
        try Meta.set(db, SyncMeta.rescan, 1)
    }

    /// Records which topic is read, and its number of partitions. If either changed, everything known of the old topic
    /// is void: the same partition numbers are other logs, and keys map to other partitions.
    ///
    /// - Returns: true if everything known of the topic was forgotten.
    package func adoptTopic(_ topic: String, partitionCount: Int) throws -> Bool {
        let shape = "\(topic)/\(partitionCount)"
        return try mapErrors {
            try database.write { db in
                let known = try Meta.text(db, SyncMeta.topicShape)
                guard known != shape else { return false }
                try Meta.set(db, SyncMeta.topicShape, shape)
                // A store from before the topic was recorded has no value.
                guard known != nil else { return false }
                try ReadProgress.deleteOffsets(db, of: topic)
                try Meta.set(db, SyncMeta.ownPartitions, nil as String?)
                try Meta.set(db, SyncMeta.snapshotWanted, nil as String?)
                // The new topic may keep more than the previous one.
                try Unkept.forget(db)
                try forgetOwn(db)
                return true
            }
        }
    }

    /// Returns the partitions in which this node's transactions were seen.
    package func ownPartitions() throws -> Set<Int32> {
        try read { try OwnPartitions.load($0) }
    }

    /// Returns true while this node counts which of its transactions the topic has, also after a crash interrupted
    /// that.
    package func isRescanning() throws -> Bool {
        try read { try Meta.integer($0, SyncMeta.rescan) == 1 }
    }

    package func endRescan() throws {
        try mapErrors { try database.write { try Meta.set($0, SyncMeta.rescan, 0) } }
    }
}
