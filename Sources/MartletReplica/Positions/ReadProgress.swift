package import GRDB
package import MartletStore

/// How far this node has read: the next offset of each partition, and the newest sequence of each origin.
///
/// Kept in `_martlet_meta`, beside the clock, so that a commit of the engine changes one page for all of it, as long as
/// there are few enough to fit. The views `_martlet_offsets` and `_martlet_origins` show it as tables, and serve reads
/// whose speed doesn't matter.
package enum ReadProgress {
    /// The compiled statements of the engine's connection.
    package struct Statements {
        package var findOffset: PreparedStatement?
        package var findOrigin: PreparedStatement?
    }

    /// Returns the key of a partition.
    package static func offsetKey(_ topic: String, _ partition: Int32) -> String { "offset/\(partition)/\(topic)" }

    /// The same as SQL, from SQL for the topic's name and the partition's number.
    private static func offsetKey(_ topic: String, _ partition: String) -> String {
        "'offset/' || \(partition) || '/' || \(topic)"
    }

    /// Finds `next, origin, sequence, appended` of a partition: `?1` is the topic, `?2` the partition.
    package static let findOffset =
        "SELECT value, origin, sequence, at FROM \(InternalName.meta) WHERE key = \(offsetKey("?1", "?2"))"

    /// Sets them: topic, partition, next, origin, sequence, appended. May be followed by a condition.
    package static let setOffset = """
        INSERT INTO \(InternalName.meta)(key, value, origin, sequence, at)
        VALUES (\(offsetKey("?1", "?2")), ?3, ?4, ?5, ?6)
        ON CONFLICT DO UPDATE SET value = excluded.value, origin = excluded.origin, sequence = excluded.sequence,
        at = excluded.at
        """

    /// SQL to delete the offsets that match a condition on `_martlet_offsets`.
    package static func deleteOffsets(where condition: String) -> String {
        """
        DELETE FROM \(InternalName.meta) WHERE key IN (
        SELECT \(offsetKey("topic", "partition")) FROM _martlet_offsets WHERE \(condition))
        """
    }

    /// Returns the key of an origin, from the node's number.
    package static func originKey(_ node: Int64) -> String { "origin/\(node)" }

    /// The same as SQL, from SQL for the node's number.
    package static func originKey(_ node: String) -> String { "'origin/' || \(node)" }

    /// Finds `applied` of an origin: `?1` is the node's number.
    package static let findOrigin = "SELECT value FROM \(InternalName.meta) WHERE key = \(originKey("?1"))"

    /// Sets it without a message from that origin: node, applied, heard. A known origin keeps its `heard`, and its
    /// `applied` if that is higher.
    package static let setApplied = """
        INSERT INTO \(InternalName.meta)(key, value, at) VALUES (\(originKey("?1")), ?2, ?3)
        ON CONFLICT DO UPDATE SET value = max(value, excluded.value)
        """

    package static let dropViews = "DROP VIEW IF EXISTS _martlet_offsets; DROP VIEW IF EXISTS _martlet_origins"

    /// Takes over the former tables, and creates the views in their place.
    package static func migrate(_ db: Database) throws {
        try db.execute(
            sql: """
                INSERT INTO \(InternalName.meta)(key, value, origin, sequence, at)
                SELECT \(offsetKey("topic", "partition")), next, origin, sequence, appended FROM _martlet_offsets;
                INSERT INTO \(InternalName.meta)(key, value, at)
                SELECT \(originKey("node")), applied, heard FROM _martlet_origins;
                DROP TABLE _martlet_offsets;
                DROP TABLE _martlet_origins;
                CREATE VIEW _martlet_offsets(topic, partition, next, origin, sequence, appended) AS
                  SELECT substr(key, 8 + instr(substr(key, 8), '/')), CAST(substr(key, 8) AS INTEGER), value, \
                origin, sequence, at
                  FROM \(InternalName.meta) WHERE key GLOB 'offset/*';
                CREATE VIEW _martlet_origins(node, applied, heard) AS
                  SELECT CAST(substr(key, 8) AS INTEGER), value, at FROM \(InternalName.meta) WHERE key GLOB 'origin/*';
                """)
    }
}
