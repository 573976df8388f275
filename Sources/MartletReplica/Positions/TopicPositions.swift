package import MartletBus
import MartletStore

/// Where this node reads a topic, and what it knows of the topic's shape and ends.
package struct TopicPositions {
    private let connection: WriterConnection
    private let topic: String

    package init(_ connection: WriterConnection, topic: String) {
        self.connection = connection
        self.topic = topic
    }

    /// Returns the next offset to read in each partition.
    package func all() throws -> [PartitionPosition] {
        try connection.read { try ReadProgress.offsets($0, of: topic) }
    }

    /// The same, but only for partitions whose last read message is known.
    package func known() throws -> [PartitionPosition] {
        try connection.read { try ReadProgress.knownOffsets($0, of: topic) }
    }

    /// Continues reading the partitions at these offsets, because what was read there before no longer exists. Messages
    /// that arrive again are recognized by origin and sequence, and dropped.
    ///
    /// - Parameter forgetsOwn: true to forget which of this node's transactions were read back, and count again from
    ///   now on.
    package func reset(to positions: [PartitionPosition], forgetsOwn: Bool) throws {
        try connection.writeMeta { db in
            for position in positions { try ReadProgress.setOffset(db, topic, position) }
            if forgetsOwn { try OwnCount.restart(db, node: connection.node, resumes: true) }
        }
    }

    /// Records the topic's number of partitions. If topic or number changed, everything known of the old topic is void:
    /// the same partition numbers are other logs, and keys map to other partitions.
    ///
    /// - Returns: true if everything known of the topic was forgotten.
    package func adopt(partitionCount: Int) throws -> Bool {
        try connection.writeMeta { db in
            let shape = Self.shape(topic, partitionCount)
            let known = try Meta.text(db, SyncMeta.topicShape)
            guard known != shape else { return false }
            try Meta.set(db, SyncMeta.topicShape, shape)
            // A store from before the topic was recorded has no value.
            guard known != nil else { return false }
            try ReadProgress.deleteOffsets(db, of: topic)
            try Meta.set(db, SyncMeta.ownPartitions, nil as String?)
            try WantedOffsets().save(db)
            // The new topic may keep more than the previous one.
            try UnretainedRanges.forget(db)
            try OwnCount.restart(db, node: connection.node, resumes: false)
            return true
        }
    }

    /// Returns true if the topic had this number of partitions when it was last read.
    package func isKnown(partitionCount: Int) throws -> Bool {
        try connection.read { try Meta.text($0, SyncMeta.topicShape) } == Self.shape(topic, partitionCount)
    }

    private static func shape(_ topic: String, _ partitionCount: Int) -> String { "\(topic)/\(partitionCount)" }

    /// Stores the ends of the partitions, so that this node's lag can be read from the store.
    package func noteEnds(_ ends: [Int32: Int64]) throws {
        try connection.writeMeta { db in
            for (partition, end) in ends { try Meta.set(db, SyncMeta.end(topic: topic, partition: partition), end) }
        }
    }
}

extension SyncMeta {
    /// The end of a partition, as last seen.
    package static func end(topic: String, partition: Int32) -> String { "end:\(topic):\(partition)" }
}
