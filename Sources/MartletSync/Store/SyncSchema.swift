import GRDB
import MartletStore

/// The tables that syncing adds to a store. Part of the on-disk format: steps are added to `migrate`, never changed.
enum SyncSchema {
    static let version: Int64 = 14

    /// Makes sure the tables are there, in the caller's transaction.
    ///
    /// - Parameter maxMessageBytes: what is larger is sent in chunks.
    static func ensure(_ db: Database, maxMessageBytes: Int) throws {
        let found = try Meta.integer(db, SyncMeta.format) ?? 0
        guard found <= version else {
            throw StoreError(
                .newerVersion, "The store has sync format \(found); this program supports formats up to \(version).",
                hint: "Update Martlet. Nothing was changed.")
        }
        guard found < version else { return }
        if found < 1 {
            // What drops all tables of a file leaves its views.
            try db.execute(sql: ReadProgress.dropViews)
            try create(db)
        }
        // 2: when the broker took the last message that was read, since a topic made anew may have the same one in its
        // place.
        if found < 2 { try db.execute(sql: "ALTER TABLE _martlet_offsets ADD COLUMN appended INTEGER") }
        // 3: the snapshots that were loaded, and how far the one that is being loaded has come.
        if found < 3 {
            try db.execute(
                sql: """
                    CREATE TABLE _martlet_snapshots(
                      id BLOB PRIMARY KEY, maker BLOB NOT NULL, made INTEGER NOT NULL, next INTEGER NOT NULL,
                      parts INTEGER NOT NULL, rows INTEGER NOT NULL, tombstones INTEGER NOT NULL, digest BLOB NOT NULL,
                      begun INTEGER NOT NULL, finished INTEGER) WITHOUT ROWID
                    """)
        }
        // 4: what checks between nodes have found.
        if found < 4 {
            try db.execute(
                sql: """
                    CREATE TABLE _martlet_divergences(
                      id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, slot INTEGER, kind TEXT NOT NULL,
                      outcome TEXT NOT NULL, hlc INTEGER, node INTEGER, other_hlc INTEGER NOT NULL,
                      other_node INTEGER NOT NULL, sender INTEGER NOT NULL, since INTEGER NOT NULL)
                    """)
        }
        // 5: what other nodes have promised, so that tombstones can be collected; what was refused for that, and said
        // once more; rows that a snapshot has not mentioned so far; tombstones that are never forgotten.
        if found < 5 {
            try db.execute(
                sql: """
                    CREATE TABLE _martlet_members(
                      node INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, hlc INTEGER NOT NULL, heard INTEGER NOT NULL);
                    ALTER TABLE _martlet_outbox ADD COLUMN restated INTEGER;
                    CREATE TABLE _martlet_lasting(
                      entity INTEGER NOT NULL, ident BLOB NOT NULL, PRIMARY KEY(entity, ident)) WITHOUT ROWID;
                    CREATE TABLE _martlet_unmentioned(
                      entity INTEGER NOT NULL, ident BLOB NOT NULL, PRIMARY KEY(entity, ident)) WITHOUT ROWID;
                    """)
        }
        // 6: what it takes to open a quarantined message later, and the key that it is sealed with.
        if found < 6 {
            try db.execute(
                sql: """
                    ALTER TABLE _martlet_quarantine ADD COLUMN key BLOB;
                    ALTER TABLE _martlet_quarantine ADD COLUMN appended INTEGER;
                    ALTER TABLE _martlet_quarantine ADD COLUMN proof INTEGER NOT NULL DEFAULT 0;
                    ALTER TABLE _martlet_quarantine ADD COLUMN missing_key TEXT;
                    """)
        }
        // 7: a filter keeps many rows aside, and those that wait for something else are looked for among them.
        if found < 7 {
            try db.execute(sql: "CREATE INDEX _martlet_shadows_reason ON _martlet_shadows(entity, reason)")
        }
        // 8: how far partitions and origins were read is kept beside the clock.
        if found < 8 { try ReadProgress.migrate(db) }
        // 9: what was remembered of deletes that named no row, and what was about to be published of them.
        if found > 0, found < 9 { try NamelessRows.drop(db, maxMessageBytes: maxMessageBytes) }
        // 10: numbers that messages had named, and that no node comes to.
        if found > 0, found < 10 { try StoredBounds.mend(db) }
        // 11: how much of a quarantined message is kept, and which transaction it names.
        if found < 11 { try QuarantineColumns.add(db) }
        // 12: a large transaction is enqueued in several commits, and its message kept in parts.
        if found < 12 {
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS _martlet_outbox_parts(
                      sequence INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL);
                    CREATE UNIQUE INDEX IF NOT EXISTS _martlet_outbox_parts_place ON _martlet_outbox_parts(sequence, part);
                    CREATE TABLE IF NOT EXISTS _martlet_early(change INTEGER PRIMARY KEY, ident BLOB NOT NULL);
                    """)
        }
        // 13: transactions that the topic does not keep.
        if found < 13 {
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS _martlet_unkept(
                      first INTEGER PRIMARY KEY, last INTEGER NOT NULL, bytes INTEGER NOT NULL, since INTEGER NOT NULL,
                      covered INTEGER NOT NULL DEFAULT 0)
                    """)
        }
        // 14: what the changes of a transaction that is enqueued in part leave behind.
        if found < 14 {
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS _martlet_left(
                      id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, row INTEGER, ident BLOB, known BLOB);
                    CREATE TABLE IF NOT EXISTS _martlet_reused(
                      id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, key INTEGER NOT NULL, change INTEGER NOT NULL,
                      old BLOB NOT NULL, new BLOB NOT NULL, before INTEGER NOT NULL);
                    CREATE INDEX IF NOT EXISTS _martlet_reused_key ON _martlet_reused(entity, key);
                    """)
        }
        try Meta.set(db, SyncMeta.format, version)
    }

    /// For those who only read, and can't bring the tables to this version.
    ///
    /// - Parameter store: what the store is called.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` where they are of another one.
    static func requireCurrent(_ db: Database, of store: String) throws {
        guard try Meta.integer(db, SyncMeta.format) == version else {
            throw StoreError(
                .invalidArgument, "\(store) has an older format.",
                hint: "Start its agent once with this version of Martlet.")
        }
    }

    private static func create(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE _martlet_outbox(sequence INTEGER PRIMARY KEY, txn INTEGER NOT NULL, payload BLOB NOT NULL);
                CREATE TABLE _martlet_origins(node INTEGER PRIMARY KEY, applied INTEGER NOT NULL, heard INTEGER);
                CREATE TABLE _martlet_gaps(
                  node INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
                  PRIMARY KEY(node, first)) WITHOUT ROWID;
                CREATE TABLE _martlet_offsets(
                  topic TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL, origin BLOB, sequence INTEGER,
                  PRIMARY KEY(topic, partition)) WITHOUT ROWID;
                CREATE TABLE _martlet_chunks(
                  origin BLOB NOT NULL, sequence INTEGER NOT NULL, chunk INTEGER NOT NULL, count INTEGER NOT NULL,
                  format TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(origin, sequence, chunk)) WITHOUT ROWID;
                CREATE TABLE _martlet_shadows(
                  id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, reason TEXT NOT NULL, detail TEXT,
                  wait BLOB, hlc INTEGER, node INTEGER, local_id INTEGER, since INTEGER NOT NULL, UNIQUE(entity, ident));
                CREATE INDEX _martlet_shadows_wait ON _martlet_shadows(wait) WHERE wait IS NOT NULL;
                CREATE TABLE _martlet_shadow_columns(
                  shadow INTEGER NOT NULL, slot INTEGER NOT NULL, value, reference INTEGER NOT NULL, hlc INTEGER NOT NULL,
                  node INTEGER NOT NULL, PRIMARY KEY(shadow, slot)) WITHOUT ROWID;
                CREATE TABLE _martlet_pending(
                  entity INTEGER NOT NULL, ident BLOB NOT NULL, slot INTEGER NOT NULL, value BLOB NOT NULL,
                  wait BLOB NOT NULL, since INTEGER NOT NULL, PRIMARY KEY(entity, ident, slot)) WITHOUT ROWID;
                CREATE INDEX _martlet_pending_wait ON _martlet_pending(wait);
                CREATE TABLE _martlet_deferred(
                  id INTEGER PRIMARY KEY, reason TEXT NOT NULL, detail TEXT, release INTEGER, origin BLOB NOT NULL,
                  sequence INTEGER NOT NULL, payload BLOB NOT NULL, since INTEGER NOT NULL);
                CREATE TABLE _martlet_quarantine(
                  id INTEGER PRIMARY KEY, topic TEXT NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL,
                  reason TEXT NOT NULL, headers TEXT NOT NULL, payload BLOB NOT NULL, since INTEGER NOT NULL);
                CREATE TABLE _martlet_conflicts(
                  id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, slot INTEGER, kind TEXT NOT NULL,
                  value, reference INTEGER NOT NULL DEFAULT 0, hlc INTEGER NOT NULL, node INTEGER NOT NULL,
                  winner_hlc INTEGER NOT NULL, winner_node INTEGER NOT NULL, since INTEGER NOT NULL, reapplied INTEGER);
                """)
    }
}

enum SyncMeta {
    static let format = "sync_format"
    static let node = "node"
    static let nodeName = "node_name"
    static let clock = "clock"
    static let nextSequence = "next_sequence"
    /// There while a transaction is enqueued in part: the clock of the last change that is encoded, and how many parts
    /// there are.
    static let partialReading = "partial_reading"
    static let partialParts = "partial_parts"
    /// There while something may go on that waits for a change of such a transaction.
    static let unsettled = "unsettled"
    /// The last sequence of this node that the broker acknowledged, with all before it.
    static let acknowledged = "acknowledged"
    /// The sequence up to which all of this node's were read back from the topic.
    static let confirmed = "confirmed"
    /// The partitions in which it was, by number, with commas between them.
    static let ownPartitions = "own_partition"
    /// The topic that offsets and ``confirmed`` are of, and its number of partitions: `name/3`.
    static let topicShape = "topic_shape"
    /// Bounds of how far this node's clock was ahead of the broker's when that was last measured, in milliseconds.
    static let clockOffsetLow = "clock_offset_low"
    static let clockOffsetHigh = "clock_offset_high"
    /// There while a partition is read again from its beginning, to see what of this node's it still has.
    static let rescan = "rescan"
    /// For which schema all was tried again that waits for a constraint.
    static let retriedSchema = "retried_schema"
    /// Where the store was when an agent last ran on it.
    static let place = "place"
    /// What partitions were passed over, as no snapshot had it that the topic had dropped; see ``WantedOffsets``.
    static let snapshotWanted = "snapshot_wanted"
    /// The hybrid logical clock up to which tombstones were forgotten here.
    static let collected = "collected"
    /// That of the node that has forgotten most, as far as this one has heard.
    static let knownCollected = "known_collected"
    /// What is published and taken, as JSON. Absent: everything.
    static let filters = "filters"
    /// The filters of before, while what follows from a change of them is not done yet.
    static let formerFilters = "former_filters"
    /// There once something was changed in an ignored table that other nodes have: this node lacks what they need of
    /// it.
    static let withheldOfKnown = "withheld_of_known"
    /// Under which of its two keys this node published its newest snapshot, and how many messages are under each:
    /// `1:20,18`.
    static let snapshotSlots = "snapshot_slots"
    /// When somebody last asked for word of what other nodes have of this one's, in milliseconds since 1970: see
    /// ``Delivery``.
    static let answerWanted = "answer_wanted"
    /// Up to which of this node's transactions another one has all, as it last said, by that one's number.
    static func delivered(to node: Int64) -> String { "\(delivered)\(node)" }
    static let delivered = "delivered/"
}
