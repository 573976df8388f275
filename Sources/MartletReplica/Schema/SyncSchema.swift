package import GRDB
import MartletCore
import MartletStore

/// The tables that syncing adds to a store. Part of the on-disk format: steps are added to `ensure`, never changed.
package enum SyncSchema {
    package static let version: Int64 = 17

    /// Creates or migrates the tables, in the caller's transaction.
    ///
    /// - Parameter maxMessageBytes: larger messages are sent in chunks.
    package static func ensure(_ db: Database, maxMessageBytes: Int) throws {
        let found = try Meta.integer(db, SyncMeta.format) ?? 0
        guard found <= version else {
            throw StoreError(
                .newerVersion, "The store has sync format \(found); this program supports formats up to \(version).",
                hint: "Update Martlet. Nothing was changed.")
        }
        guard found < version else { return }
        if found < 1 {
            // Dropping all tables of a file leaves its views.
            try db.execute(sql: ReadProgress.dropViews)
            try create(db)
        }
        // 2: when the broker appended the last message that was read, since a recreated topic may have the same message
        // at the same offset.
        if found < 2 { try db.execute(sql: "ALTER TABLE _martlet_offsets ADD COLUMN appended INTEGER") }
        // 3: the snapshots that were loaded, and the progress of the one that is being loaded.
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
                      id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, slot INTEGER, \
                    kind TEXT NOT NULL,
                      outcome TEXT NOT NULL, hlc INTEGER, node INTEGER, other_hlc INTEGER NOT NULL,
                      other_node INTEGER NOT NULL, sender INTEGER NOT NULL, since INTEGER NOT NULL)
                    """)
        }
        // 5: other nodes' watermarks for the garbage collection of tombstones; what was refused because of it, and
        // republished; rows that a snapshot has not mentioned so far; tombstones that are never collected.
        if found < 5 {
            try db.execute(
                sql: """
                    CREATE TABLE _martlet_members(
                      node INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, hlc INTEGER NOT NULL, \
                    heard INTEGER NOT NULL);
                    ALTER TABLE _martlet_outbox ADD COLUMN restated INTEGER;
                    CREATE TABLE _martlet_lasting(
                      entity INTEGER NOT NULL, ident BLOB NOT NULL, PRIMARY KEY(entity, ident)) WITHOUT ROWID;
                    CREATE TABLE _martlet_unmentioned(
                      entity INTEGER NOT NULL, ident BLOB NOT NULL, PRIMARY KEY(entity, ident)) WITHOUT ROWID;
                    """)
        }
        // 6: what it takes to open a quarantined message later, and the key that encrypts it.
        if found < 6 {
            try db.execute(
                sql: """
                    ALTER TABLE _martlet_quarantine ADD COLUMN key BLOB;
                    ALTER TABLE _martlet_quarantine ADD COLUMN appended INTEGER;
                    ALTER TABLE _martlet_quarantine ADD COLUMN proof INTEGER NOT NULL DEFAULT 0;
                    ALTER TABLE _martlet_quarantine ADD COLUMN missing_key TEXT;
                    """)
        }
        // 7: an index, since a filter can hold back many rows, and rows that wait for something else are looked for
        // among them.
        if found < 7 {
            try db.execute(sql: "CREATE INDEX _martlet_shadows_reason ON _martlet_shadows(entity, reason)")
        }
        // 8: read offsets of partitions and origins are kept beside the clock.
        if found < 8 { try ReadProgress.migrate(db) }
        // 9: repairs stored deletes of rows without an ID, and messages about them that were not published yet.
        if found > 0, found < 9 { try RowsWithoutIdentity.drop(db, maxMessageBytes: maxMessageBytes) }
        // 10: repairs numbers from messages that no node can reach.
        if found > 0, found < 10 { try StoredBounds.repair(db) }
        // 11: how much of a quarantined message is kept, and which transaction it names.
        if found < 11 { try QuarantineColumns.add(db) }
        // 12: a large transaction is enqueued in several commits, and its message kept in parts.
        if found < 12 {
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS _martlet_outbox_parts(
                      sequence INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL);
                    CREATE UNIQUE INDEX IF NOT EXISTS _martlet_outbox_parts_place \
                    ON _martlet_outbox_parts(sequence, part);
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
        // 14: what the changes of a partly enqueued transaction leave behind.
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
        // 15: large payloads that wait, or are quarantined, are kept in parts.
        if found < 15 {
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS _martlet_payload_parts(
                      owner INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL);
                    CREATE UNIQUE INDEX IF NOT EXISTS _martlet_payload_parts_place \
                    ON _martlet_payload_parts(owner, part);
                    """)
        }
        // 16: how far topics of other systems were ingested.
        if found < 16 { try db.execute(sql: SourcePlace.table) }
        // 17: the last of the records that hold up a partition.
        if found < 17 { try db.execute(sql: "ALTER TABLE _martlet_ingest ADD COLUMN last INTEGER") }
        try Meta.set(db, SyncMeta.format, version)
    }

    /// Checks the version of the tables, for connections that only read and can't migrate them.
    ///
    /// - Parameter store: how an error message calls the store.
    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the tables have another version.
    package static func requireCurrent(_ db: Database, of store: String) throws {
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
                  id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, reason TEXT NOT NULL, \
                detail TEXT,
                  wait BLOB, hlc INTEGER, node INTEGER, local_id INTEGER, since INTEGER NOT NULL, \
                UNIQUE(entity, ident));
                CREATE INDEX _martlet_shadows_wait ON _martlet_shadows(wait) WHERE wait IS NOT NULL;
                CREATE TABLE _martlet_shadow_columns(
                  shadow INTEGER NOT NULL, slot INTEGER NOT NULL, value, reference INTEGER NOT NULL, \
                hlc INTEGER NOT NULL,
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
                  id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, ident BLOB NOT NULL, slot INTEGER, \
                kind TEXT NOT NULL,
                  value, reference INTEGER NOT NULL DEFAULT 0, hlc INTEGER NOT NULL, node INTEGER NOT NULL,
                  winner_hlc INTEGER NOT NULL, winner_node INTEGER NOT NULL, since INTEGER NOT NULL, reapplied INTEGER);
                """)
    }
}
