import GRDB
import MartletStore

extension SyncEngine {
    /// Where each partition of the topic is read on.
    public func offsets(topic: String) throws -> [PartitionPosition] {
        try mapErrors {
            try database.read { db in
                try Row.fetchAll(
                    db, sql: "SELECT partition, next FROM _martlet_offsets WHERE topic = ? ORDER BY partition", arguments: [topic]
                ).map { PartitionPosition(partition: $0["partition"], offset: $0["next"]) }
            }
        }
    }

    /// Reads the partition from this offset on: what was read there before is not there any more. What comes again is
    /// told by origin and sequence, and dropped.
    func resetOffset(topic: String, to position: PartitionPosition) throws {
        try mapErrors {
            try database.write { db in
                try db.execute(
                    sql: """
                        INSERT INTO _martlet_offsets(topic, partition, next) VALUES (?, ?, ?)
                        ON CONFLICT DO UPDATE SET next = excluded.next, origin = NULL, sequence = NULL
                        """, arguments: [topic, position.partition, position.offset])
            }
        }
    }

    /// Sets what counts as confirmed, before the topic is read anew.
    func setConfirmed(_ sequence: Int64) throws {
        try mapErrors { try database.write { try Meta.set($0, SyncMeta.confirmed, sequence) } }
    }
}
