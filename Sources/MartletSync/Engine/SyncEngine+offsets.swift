import GRDB
import MartletStore

extension SyncEngine {
    /// Where each partition of the topic is read on.
    public func offsets(topic: String) throws -> [PartitionPosition] {
        try read { db in
            try Row.fetchAll(
                db, sql: "SELECT partition, next FROM _martlet_offsets WHERE topic = ? ORDER BY partition",
                arguments: [topic]
            ).map { PartitionPosition(partition: $0["partition"], offset: $0["next"]) }
        }
    }

    /// The same, of those partitions of which it is known what was read last.
    func knownOffsets(topic: String) throws -> [PartitionPosition] {
        try read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT partition, next FROM _martlet_offsets WHERE topic = ? AND appended IS NOT NULL
                    ORDER BY partition
                    """, arguments: [topic]
            ).map { PartitionPosition(partition: $0["partition"], offset: $0["next"]) }
        }
    }

    /// Reads partitions from these offsets on: what was read there before is not there any more. What comes again is
    /// told by origin and sequence, and dropped.
    ///
    /// - Parameter forgetsOwn: true where what came by of this node counts no longer, but what comes by from now on.
    func resetOffsets(topic: String, to positions: [PartitionPosition], forgetsOwn: Bool) throws {
        try mapErrors {
            try database.write { db in
                for position in positions {
                    try db.execute(
                        sql: ReadProgress.setOffset,
                        arguments: [topic, position.partition, position.offset, nil, nil, nil])
                }
                if forgetsOwn { try forgetOwn(db) }
            }
        }
    }

    /// What came by of this node counts no longer, but what a snapshot has, and what comes by from now on.
    func recountOwn() throws {
        try mapErrors { try database.write { try forgetOwn($0) } }
    }

    private func forgetOwn(_ db: Database) throws {
        try OwnChunks.forget(db, node)
        try Meta.set(db, SyncMeta.confirmed, 0)
        try Meta.set(db, SyncMeta.rescan, 1)
    }

    /// Notes which topic is read, and how many partitions it has. Where that is not what it was, nothing that is known
    /// of the old one says anything of the new one: the same numbers are other logs, and keys go to other partitions.
    ///
    /// - Returns: true where all that was known of the topic has been forgotten.
    func adoptTopic(_ topic: String, partitionCount: Int) throws -> Bool {
        let shape = "\(topic)/\(partitionCount)"
        return try mapErrors {
            try database.write { db in
                let known = try Meta.text(db, SyncMeta.topicShape)
                guard known != shape else { return false }
                try Meta.set(db, SyncMeta.topicShape, shape)
                // A store from before this was noted.
                guard known != nil else { return false }
                try db.execute(sql: ReadProgress.deleteOffsets(where: "topic = ?"), arguments: [topic])
                try Meta.set(db, SyncMeta.ownPartitions, nil as String?)
                try Meta.set(db, SyncMeta.snapshotWanted, nil as String?)
                // It may keep more than the one of before.
                try Unkept.forget(db)
                try forgetOwn(db)
                return true
            }
        }
    }

    /// The partitions in which this node's own transactions were seen.
    func ownPartitions() throws -> Set<Int32> {
        try read { try OwnPartitions.load($0) }
    }

    /// True while what the topic has of this node's is being counted, also where a crash broke that off.
    func isRescanning() throws -> Bool {
        try read { try Meta.integer($0, SyncMeta.rescan) == 1 }
    }

    func endRescan() throws {
        try mapErrors { try database.write { try Meta.set($0, SyncMeta.rescan, 0) } }
    }
}

/// The partitions in which a node's own transactions were seen: one, and more where the topic was given more
/// partitions.
enum OwnPartitions {
    static func load(_ db: Database) throws -> Set<Int32> {
        Set(try Meta.text(db, SyncMeta.ownPartitions)?.split(separator: ",").compactMap { Int32($0) } ?? [])
    }

    static func save(_ db: Database, _ partitions: Set<Int32>) throws {
        try Meta.set(db, SyncMeta.ownPartitions, partitions.sorted().map(String.init).joined(separator: ","))
    }
}
