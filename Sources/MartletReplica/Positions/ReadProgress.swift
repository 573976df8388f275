import Foundation
package import GRDB
package import MartletBus
package import MartletCore
package import MartletStore
package import MartletWire

/// How far this node has read: the next offset of each partition, and the newest sequence of each origin. The only code
/// that has the SQL of both.
///
/// The engine's commits write them with everything else that they note; see ``noteOffset(_:_:_:_:_:)`` and
/// ``noteOrigin(_:_:_:at:)``.
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
    private static let findOffset =
        "SELECT value, origin, sequence, at FROM \(InternalName.meta) WHERE key = \(offsetKey("?1", "?2"))"

    /// Sets them: topic, partition, next, origin, sequence, appended. May be followed by a condition.
    private static let setOffset = """
        INSERT INTO \(InternalName.meta)(key, value, origin, sequence, at)
        VALUES (\(offsetKey("?1", "?2")), ?3, ?4, ?5, ?6)
        ON CONFLICT DO UPDATE SET value = excluded.value, origin = excluded.origin, sequence = excluded.sequence,
        at = excluded.at
        """

    /// Deletes the offsets that match a condition on `_martlet_offsets`.
    static func deleteOffsets(_ db: Database, where condition: String, _ arguments: StatementArguments = []) throws {
        try db.execute(
            sql: """
                DELETE FROM \(InternalName.meta) WHERE key IN (
                SELECT \(offsetKey("topic", "partition")) FROM _martlet_offsets WHERE \(condition))
                """, arguments: arguments)
    }

    /// Returns the key of an origin, from the node's number.
    package static func originKey(_ node: Int64) -> String { "origin/\(node)" }

    /// The same as SQL, from SQL for the node's number.
    package static func originKey(_ node: String) -> String { "'origin/' || \(node)" }

    /// Finds `applied` of an origin: `?1` is the node's number.
    private static let findOrigin = "SELECT value FROM \(InternalName.meta) WHERE key = \(originKey("?1"))"

    /// Sets it without a message from that origin: node, applied, heard. A known origin keeps its `heard`, and its
    /// `applied` if that is higher.
    private static let setApplied = """
        INSERT INTO \(InternalName.meta)(key, value, at) VALUES (\(originKey("?1")), ?2, ?3)
        ON CONFLICT DO UPDATE SET value = max(value, excluded.value)
        """

    // MARK: Offsets of partitions

    /// Returns how far a partition was read, looked up at most once. For a connection that nobody else writes to.
    package static func offset(
        _ db: Database, _ positions: ReadPositions, _ topic: String, _ partition: Int32
    ) throws -> ReadPositions.Offset {
        if let known = positions.offset(topic, partition) { return known }
        let find = try kept(&positions.statements.findOffset, db, findOffset)
        find.bind(1, text: topic)
        find.bind(2, Int64(partition))
        let found =
            try find.first {
                ReadPositions.Offset(
                    next: $0.integer(0), origin: $0.optionalBlob(1).flatMap { NodeID(bytes: $0) },
                    sequence: $0.optionalInteger(2), appended: $0.optionalInteger(3))
            } ?? ReadPositions.Offset()
        positions.set(topic, partition, found)
        return found
    }

    /// Notes how far a partition was read. The engine stores it when the transaction ends.
    package static func noteOffset(
        _ notes: CommitNotes, _ positions: ReadPositions, _ topic: String, _ partition: Int32,
        _ offset: ReadPositions.Offset
    ) {
        notes.add(
            offsetKey(topic, partition), offset.next, origin: offset.origin, sequence: offset.sequence,
            at: offset.appended)
        positions.set(topic, partition, offset)
    }

    /// Sets where to continue reading a partition. The message before is unknown.
    package static func setOffset(_ db: Database, _ topic: String, _ position: PartitionPosition) throws {
        try db.execute(
            sql: setOffset, arguments: [topic, position.partition, position.offset, nil, nil, nil])
    }

    /// Advances a partition to where the maker of a snapshot has read it.
    ///
    /// - Returns: false if this node has read as far.
    package static func advanceOffset(
        _ db: Database, _ topic: String, to position: WireSnapshotPosition
    ) throws -> Bool {
        try db.execute(
            sql: "\(setOffset) WHERE excluded.value > value",
            arguments: [
                topic, position.partition, position.next, position.origin.isEmpty ? nil : position.origin,
                position.sequence == 0 ? nil : Int64(position.sequence),
                position.hasAppendedMs ? position.appendedMs : nil,
            ])
        return db.changesCount > 0
    }

    package static func deleteOffsets(_ db: Database, of topic: String) throws {
        try deleteOffsets(db, where: "topic = ?", [topic])
    }

    /// Deletes the offsets of a partition in all topics.
    package static func deleteOffsets(_ db: Database, in partition: Int32) throws {
        try deleteOffsets(db, where: "partition = ?", [partition])
    }

    /// Returns the next offset to read in each partition of the topic.
    package static func offsets(_ db: Database, of topic: String) throws -> [PartitionPosition] {
        try Row.fetchAll(
            db, sql: "SELECT partition, next FROM _martlet_offsets WHERE topic = ? ORDER BY partition",
            arguments: [topic]
        ).map { PartitionPosition(partition: $0["partition"], offset: $0["next"]) }
    }

    /// The same, but only for partitions whose last read message is known.
    package static func knownOffsets(_ db: Database, of topic: String) throws -> [PartitionPosition] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT partition, next FROM _martlet_offsets WHERE topic = ? AND appended IS NOT NULL
                ORDER BY partition
                """, arguments: [topic]
        ).map { PartitionPosition(partition: $0["partition"], offset: $0["next"]) }
    }

    /// Returns the next offset to read in each partition of all topics.
    package static func offsets(_ db: Database) throws -> [(topic: String, position: PartitionPosition)] {
        try Row.fetchAll(db, sql: "SELECT * FROM _martlet_offsets ORDER BY topic, partition").map {
            ($0["topic"], PartitionPosition(partition: $0["partition"], offset: $0["next"]))
        }
    }

    /// Returns the positions in the topic that a snapshot states.
    package static func snapshotPositions(_ db: Database, of topic: String) throws -> [WireSnapshotPosition] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT partition, next, origin, sequence, appended FROM _martlet_offsets WHERE topic = ?
                ORDER BY partition
                """,
            arguments: [topic]
        ).map { row in
            var position = WireSnapshotPosition()
            position.partition = row["partition"]
            position.next = row["next"]
            position.origin = row["origin"] as Data? ?? Data()
            position.sequence = UInt64(max(0, row["sequence"] as Int64? ?? 0))
            if let appended = row["appended"] as Int64? { position.appendedMs = appended }
            return position
        }
    }

    // MARK: Sequences of origins

    /// Returns the newest sequence of an origin, looked up until there is one. For a connection that nobody else writes
    /// to.
    package static func applied(_ db: Database, _ positions: ReadPositions, _ node: Int64) throws -> Int64? {
        if let applied = positions.applied[node] { return applied }
        let find = try kept(&positions.statements.findOrigin, db, findOrigin)
        find.bind(1, node)
        let applied = try find.first { $0.integer(0) }
        if let applied { positions.set(node, applied: applied) }
        return applied
    }

    /// The same from the file. Nil if nothing of the origin has come.
    package static func applied(_ db: Database, of node: Int64) throws -> Int64? {
        try Int64.fetchOne(db, sql: findOrigin, arguments: [node])
    }

    /// Notes how far an origin has come. The engine stores it when the transaction ends.
    package static func noteOrigin(
        _ notes: CommitNotes, _ positions: ReadPositions, _ node: Int64, at time: Int64
    ) {
        notes.add(originKey(node), positions.applied[node] ?? 0, at: time)
    }

    /// Raises the newest sequence of an origin without a message from it.
    ///
    /// - Parameter heard: when it was last heard of, in milliseconds since 1970. A known origin keeps its own.
    package static func raiseApplied(_ db: Database, of node: Int64, to applied: Int64, heard: Int64?) throws {
        try db.execute(sql: setApplied, arguments: [node, applied, heard])
    }

    /// How far an origin has come.
    package struct Origin {
        /// The node's number.
        package var number: Int64
        package var node: NodeID
        package var name: String?
        package var applied: Int64
        /// When the last transaction arrived, in milliseconds since 1970.
        package var heard: Int64?
    }

    package static func origins(_ db: Database) throws -> [Origin] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT o.node, o.applied, o.heard, n.uuid, n.name FROM _martlet_origins AS o
                JOIN \(InternalName.nodes) AS n ON n.id = o.node ORDER BY o.node
                """
        ).compactMap { row in
            guard let node = NodeID(bytes: row["uuid"] as Data) else { return nil }
            return Origin(
                number: row["node"], node: node, name: row["name"], applied: row["applied"], heard: row["heard"])
        }
    }

    /// Returns the origins from which a transaction came after this time.
    package static func origins(_ db: Database, heardAfter time: Int64) throws -> [NodeID] {
        try Data.fetchAll(
            db,
            sql: """
                SELECT n.uuid FROM _martlet_origins AS o JOIN \(InternalName.nodes) AS n ON n.id = o.node
                WHERE o.heard > ?
                """, arguments: [time]
        ).compactMap { NodeID(bytes: $0) }
    }

    // MARK: Migration

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
