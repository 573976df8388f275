import GRDB
import MartletStore

extension SyncEngine {
    /// Where each partition of the topic is read on.
    public func offsets(topic: String) throws -> [PartitionPosition] {
        try mapErrors {
            try database.read { db in
                try Row.fetchAll(
                    db, sql: "SELECT partition, next FROM _martlet_offsets WHERE topic = ? ORDER BY partition",
                    arguments: [topic]
                ).map { PartitionPosition(partition: $0["partition"], offset: $0["next"]) }
            }
        }
    }

    /// Reads the partition from this offset on: what was read there before is not there any more. What comes again is
    /// told by origin and sequence, and dropped.
    ///
    /// - Parameter forgetsOwn: true where what came by of this node counts no longer, but what comes by from now on.
    func resetOffset(topic: String, to position: PartitionPosition, forgetsOwn: Bool) throws {
        try mapErrors {
            try database.write { db in
                try db.execute(
                    sql: """
                        INSERT INTO _martlet_offsets(topic, partition, next) VALUES (?, ?, ?)
                        ON CONFLICT DO UPDATE SET next = excluded.next, origin = NULL, sequence = NULL
                        """, arguments: [topic, position.partition, position.offset])
                guard forgetsOwn else { return }
                try Meta.set(db, SyncMeta.confirmed, 0)
                try Meta.set(db, SyncMeta.rescan, 1)
            }
        }
    }

    /// The partition in which this node's own transactions were last seen.
    func ownPartition() throws -> Int32? {
        try mapErrors { try database.read { try Meta.integer($0, SyncMeta.ownPartition).map { Int32($0) } } }
    }

    /// True while what the topic has of this node's is being counted, also where a crash broke that off.
    func isRescanning() throws -> Bool {
        try mapErrors { try database.read { try Meta.integer($0, SyncMeta.rescan) == 1 } }
    }

    func endRescan() throws {
        try mapErrors { try database.write { try Meta.set($0, SyncMeta.rescan, 0) } }
    }
}
